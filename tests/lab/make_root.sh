#!/usr/bin/env bash
# make_root.sh DIR: makes DIR/{root.img,vmlinuz,initrd}: a Debian 12 machine with systemd and cgroup v2 for QEMU, whose
# one service runs /lab/job.sh from the second disk, prints to the serial line and powers off. Made once, then kept.
set -euo pipefail
dir=$1
version=4 # raise when the recipe changes
[ "$(cat "$dir/version" 2>/dev/null)" = $version ] && exit 0
rm -rf "$dir"
mkdir -p "$dir"
root=$dir/root
packages=systemd,systemd-sysv,dbus,dbus-user-session,libpam-systemd,udev,linux-image-cloud-amd64,initramfs-tools,uidmap
packages+=,python3,procps,util-linux,jq,libcurl4,libssl3,libtomlplusplus3,ca-certificates
echo "lab: making the guest's disk (about three minutes, once)"
debootstrap --variant=minbase --include=$packages bookworm "$root" http://deb.debian.org/debian >"$dir/debootstrap.log" 2>&1 ||
  { tail -5 "$dir/debootstrap.log" >&2; exit 1; }

cat >"$root/etc/systemd/system/lab.service" <<'EOF'
[Unit]
After=multi-user.target systemd-user-sessions.service user@1000.service
[Service]
Type=oneshot
ExecStart=/bin/bash /lab/job.sh
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStopPost=/sbin/poweroff -ff
[Install]
WantedBy=multi-user.target
EOF
printf '/dev/vda / ext4 rw 0 0\n/dev/vdb /lab ext4 ro,nofail 0 0\n' >"$root/etc/fstab"
mkdir -p "$root/lab" "$root/var/lib/systemd/linger"
chroot "$root" useradd -m -u 1000 -s /bin/bash alice
touch "$root/var/lib/systemd/linger/alice"
chroot "$root" systemctl -q enable lab.service
chroot "$root" systemctl -q mask systemd-timesyncd apt-daily.timer apt-daily-upgrade.timer getty@tty1 \
  serial-getty@ttyS0 e2scrub_reap.service
cp "$root"/boot/vmlinuz-* "$dir/vmlinuz"
cp "$root"/boot/initrd.img-* "$dir/initrd"
truncate -s 3G "$dir/root.img"
mke2fs -q -t ext4 -d "$root" "$dir/root.img"
rm -rf "$root"
echo $version >"$dir/version"

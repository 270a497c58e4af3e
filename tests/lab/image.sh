#!/usr/bin/env bash
# image.sh DIR [selinux]: makes DIR/root.img: a Debian 12 machine with systemd, Podman and Docker for QEMU, without a kernel;
# or with `selinux` a Debian 13, the first whose policy knows containers, with that in force and every file labelled. What it
# runs comes on a second disk (/lab). Kept for as long as this recipe, the package list in it included, is the same.
set -euo pipefail
dir=$1
policy=${2:-}
mirror=${TASKCELL_LAB_MIRROR:-http://deb.debian.org/debian}
recipe=$({ cat "$0"; echo "$mirror $policy"; } | sha256sum | cut -c1-32)
[ "$(cat "$dir/recipe" 2>/dev/null)" != "$recipe" ] || exit 0

packages="systemd systemd-sysv dbus dbus-user-session libpam-systemd udev kmod login passwd sudo uidmap procps psmisc
  python3-minimal python3 jq curl iproute2 busybox-static git xxd e2fsprogs xfsprogs btrfs-progs
  libcurl4 libssl3 libseccomp2 libcap2 libtomlplusplus3 libsqlite3-0 libmicrohttpd12
  bubblewrap podman crun docker.io rootlesskit slirp4netns iptables apparmor"
suite=bookworm
[ -z "$policy" ] || suite=trixie packages+=" selinux-policy-default policycoreutils-python-utils"
rm -rf "$dir"
mkdir -p "$dir"
root=$dir/root
trap 'rm -rf "$root"' EXIT
echo "lab: making the guest's disk (once, one to three minutes)"
mmdebstrap --variant=essential --include="${packages//$'\n'/ }" --dpkgopt=force-unsafe-io --skip=check/qemu \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  $suite "$root" "$mirror" >"$dir/log" 2>&1 || { tail -5 "$dir/log" >&2; exit 1; }

# The users: alice's manager is always there; bob's, carol's and dave's are given less than Debian gives; erin has none.
uid=1000
for user in alice bob carol dave erin; do
  chroot "$root" useradd --create-home --uid $uid --shell /bin/bash $user
  uid=$((uid + 1))
done
mkdir -p "$root/var/lib/systemd/linger"
touch "$root/var/lib/systemd/linger/alice"
given() { # UID DELEGATE
  mkdir -p "$root/etc/systemd/system/user@$1.service.d"
  printf '[Service]\nDelegate=\nDelegate=%s\n' "$2" >"$root/etc/systemd/system/user@$1.service.d/lab.conf"
}
given 1001 no
given 1002 'memory pids'
given 1003 'cpuset io memory pids'

# With lab.variant= on the kernel's command line the tests run and the machine powers off; else root gets the console.
cat >"$root/etc/systemd/system/lab.service" <<'UNIT'
[Unit]
After=multi-user.target systemd-user-sessions.service user@1000.service
ConditionKernelCommandLine=lab.variant
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -B /lab/tests/lab/guest/run.py run
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStopPost=/sbin/poweroff -ff
[Install]
WantedBy=multi-user.target
UNIT
mkdir -p "$root/etc/systemd/system/serial-getty@ttyS0.service.d"
cat >"$root/etc/systemd/system/serial-getty@ttyS0.service.d/lab.conf" <<'UNIT'
[Unit]
ConditionKernelCommandLine=!lab.variant
[Service]
ExecStart=
ExecStart=-/sbin/agetty --autologin root --noissue --keep-baud 115200 - linux
UNIT
# A busy host makes everything late, which is no failure; a start that does fail ends the machine, and says why.
for manager in system user; do
  mkdir -p "$root/etc/systemd/$manager.conf.d"
  printf '[Manager]\nDefaultTimeoutStartSec=600\nDefaultDeviceTimeoutSec=600\n' >"$root/etc/systemd/$manager.conf.d/lab.conf"
done
mkdir -p "$root/etc/systemd/system/emergency.service.d"
cat >"$root/etc/systemd/system/emergency.service.d/lab.conf" <<'UNIT'
[Service]
ExecStartPre=/bin/sh -c 'grep -q lab.variant /proc/cmdline || exit 0; journalctl -b -p err --no-pager >/dev/ttyS0; poweroff -ff'
UNIT
echo '/dev/vda / ext4 rw 0 0' >"$root/etc/fstab"
mkdir -p "$root/lab" "$root/lib/modules"
echo lab >"$root/etc/hostname"
printf '127.0.0.1 localhost lab\n' >"$root/etc/hosts"
chroot "$root" passwd -q -d root
chroot "$root" systemctl -q enable lab.service serial-getty@ttyS0.service
# The engines are started by the tests that want them; the rest has nothing to do without a network.
chroot "$root" systemctl -q disable docker.service docker.socket containerd.service podman.service podman.socket
chroot "$root" systemctl -q mask systemd-timesyncd getty@tty1 e2scrub_reap apt-daily.timer apt-daily-upgrade.timer \
  e2scrub_all.timer fstrim.timer podman-auto-update.service podman-auto-update.timer podman-restart.service apparmor.service
chroot "$root" systemctl -q --global disable podman.socket
chroot "$root" systemctl -q --global mask podman-auto-update.service podman-auto-update.timer podman-restart.service
if [ -n "$policy" ]; then
  printf 'SELINUX=enforcing\nSELINUXTYPE=default\n' >"$root/etc/selinux/config"
  # The tests are an administrator's, and Podman keeps its layers without a module of the kernel's.
  mkdir -p "$root/etc/systemd/system/lab.service.d" "$root/etc/containers"
  cat >"$root/etc/systemd/system/lab.service.d/policy.conf" <<'UNIT'
[Service]
SELinuxContext=unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023
ExecStart=
ExecStart=/bin/bash -c 'exec python3 -B /lab/tests/lab/guest/run.py run'
UNIT
  printf '[storage]\ndriver = "vfs"\n' >"$root/etc/containers/storage.conf"
  label='mount -t proc proc "$0/proc" && chroot "$0" /sbin/setfiles -F -e /proc /etc/selinux/default/contexts/files/file_contexts /'
  unshare --mount sh -c "$label" "$root" >>"$dir/log" 2>&1 || { tail -5 "$dir/log" >&2; exit 1; }
fi
truncate -s 4G "$dir/root.img"
mke2fs -q -t ext4 -d "$root" "$dir/root.img"
echo "$recipe" >"$dir/recipe"

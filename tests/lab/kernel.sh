#!/usr/bin/env bash
# kernel.sh SUITE FLAVOUR DIR: makes DIR/{vmlinuz,release,busybox,modules,modules.img}: a Debian suite's kernel (cloud-amd64:
# the one for virtual machines; amd64), its modules (once more as a disk), and a static busybox. Kept for as long as this
# recipe stays the same.
set -euo pipefail
suite=$1 flavour=$2 dir=$3
mirror=${TASKCELL_LAB_MIRROR:-http://deb.debian.org/debian}
recipe=$({ cat "$0"; echo "$suite $flavour $mirror"; } | sha256sum | cut -c1-32)
[ "$(cat "$dir/recipe" 2>/dev/null)" != "$recipe" ] || exit 0

base=${suite%-backports}
sources=("deb $mirror $base main")
[ "$suite" = "$base" ] || sources+=("deb $mirror $suite main")
rm -rf "$dir"
mkdir -p "$dir"
trap 'rm -rf "$dir/root"' EXIT
echo "lab: fetching the kernel $flavour of $suite"
mmdebstrap --variant=extract --include="linux-image-$flavour/$suite,busybox-static" --skip=check/qemu \
  "$base" "$dir/root" "${sources[@]}" >"$dir/log" 2>&1 || { grep -E '^E:' "$dir/log" >&2; exit 1; }

release=$(basename "$dir"/root/lib/modules/*)
# No guest has such devices.
rm -rf "$dir/root/lib/modules/$release/kernel"/{sound,drivers/{gpu,media,infiniband,isdn,usb,net/wireless,net/ethernet}}
depmod -b "$dir/root" "$release"
mv "$dir/root/boot/vmlinuz-$release" "$dir/vmlinuz"
truncate -s 256M "$dir/modules.img"
mke2fs -q -t ext4 -d "$dir/root/lib/modules" "$dir/modules.img"
mv "$dir/root/lib/modules/$release" "$dir/modules"
mv "$dir/root/bin/busybox" "$dir/busybox"
echo "$release" >"$dir/release"
echo "$recipe" >"$dir/recipe"

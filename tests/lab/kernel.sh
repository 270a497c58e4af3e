#!/usr/bin/env bash
# kernel.sh SUITE DIR: makes DIR/{vmlinuz,release,busybox,modules,modules.img}: the kernel that a Debian suite has for virtual
# machines, its modules (once more as a disk), and a static busybox. Kept for as long as this recipe stays the same.
set -euo pipefail
suite=$1 dir=$2
mirror=${TASKCELL_LAB_MIRROR:-http://deb.debian.org/debian}
recipe=$({ cat "$0"; echo "$suite $mirror"; } | sha256sum | cut -c1-32)
[ "$(cat "$dir/recipe" 2>/dev/null)" != "$recipe" ] || exit 0

base=${suite%-backports}
sources=("deb $mirror $base main")
[ "$suite" = "$base" ] || sources+=("deb $mirror $suite main")
rm -rf "$dir"
mkdir -p "$dir"
trap 'rm -rf "$dir/root"' EXIT
echo "lab: fetching the kernel of $suite"
mmdebstrap --variant=extract --include="linux-image-cloud-amd64/$suite,busybox-static" --skip=check/qemu \
  "$base" "$dir/root" "${sources[@]}" >"$dir/log" 2>&1 || { grep -E '^E:' "$dir/log" >&2; exit 1; }

release=$(basename "$dir"/root/lib/modules/*)
depmod -b "$dir/root" "$release"
mv "$dir/root/boot/vmlinuz-$release" "$dir/vmlinuz"
truncate -s 256M "$dir/modules.img"
mke2fs -q -t ext4 -d "$dir/root/lib/modules" "$dir/modules.img"
mv "$dir/root/lib/modules/$release" "$dir/modules"
mv "$dir/root/bin/busybox" "$dir/busybox"
echo "$release" >"$dir/release"
echo "$recipe" >"$dir/recipe"

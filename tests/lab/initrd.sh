#!/usr/bin/env bash
# initrd.sh KERNEL_DIR OUT [TREE]: packs the first file system of a guest: busybox, the modules it needs for its disks in
# the order they are loaded, guest/init, and TREE's files over that.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
kernel=$1 out=$2 tree=${3:-}
root=$(mktemp -d /tmp/taskcell-lab-initrd.XXXXXX)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,proc,sys,dev,root,modules}
install "$kernel/busybox" "$root/bin/busybox"
install "$here/guest/init" "$root/init"

# modules.dep has for each module what must be loaded before it, last first.
load() {
  local line dependency
  line=$(grep -m1 "/$1\.ko[^:]*:" "$kernel/modules/modules.dep") || return 0 # built in
  for dependency in $(echo "${line#*:}" | tr ' ' '\n' | tac) "${line%%:*}"; do
    grep -qxF "$(basename "$dependency")" "$root/modules/order" 2>/dev/null && continue
    cp "$kernel/modules/$dependency" "$root/modules/"
    basename "$dependency" >>"$root/modules/order"
  done
}
for module in virtio_pci virtio_blk crc32c_generic ext4; do load $module; done
touch "$root/modules/order"
[ -z "$tree" ] || cp -a "$tree/." "$root/"
(cd "$root" && find . -print0 | cpio --null --quiet --create --format=newc --owner=0:0) >"$out"

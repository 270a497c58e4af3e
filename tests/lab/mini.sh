#!/usr/bin/env bash
# mini.sh KERNEL_DIR BUILD_DIR PLAN OUT: packs a guest of nothing but busybox, the programs of BUILD_DIR that PLAN names, and
# what they are linked with.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
kernel=$1 build=$2 plan=$3 out=$4
tree=$(mktemp -d /tmp/taskcell-lab-mini.XXXXXX)
trap 'rm -rf "$tree"' EXIT
root=$tree/mini
mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib64,usr/lib,usr/libexec/taskcell,etc,proc,sys,dev,tmp,run,root,home,var/lib,tests}
for name in bin sbin lib lib64; do ln -s usr/$name "$root/$name"; done
install "$kernel/busybox" "$root/usr/bin/busybox"
for name in $("$kernel/busybox" --list); do [ "$name" = busybox ] || ln -s busybox "$root/usr/bin/$name"; done
install "$here/guest/mini" "$root/start"
cp "$plan" "$root/plan"
for name in taskcell-launch taskcell-init; do install "$build/bin/$name" "$root/usr/libexec/taskcell/"; done
while read -r _ name _; do install "$build/tests/$name" "$root/tests/"; done <"$plan"
for library in $(ldd "$root"/tests/* | grep -oE '/[^ :]+\.so[^ ]*' | sort -u); do
  install -D "$(readlink -f "$library")" "$root/usr/lib/x86_64-linux-gnu/$(basename "$library")"
done
cp "$root"/usr/lib/x86_64-linux-gnu/ld-linux* "$root/usr/lib64/"
printf 'root:x:0:0::/root:/bin/sh\ntaskcell-test:x:1000:1000::/home:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\ntaskcell-test:x:1000:\nnogroup:x:65534:\n' >"$root/etc/group"
"$here/initrd.sh" "$kernel" "$out" "$tree"

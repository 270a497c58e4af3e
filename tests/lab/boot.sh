#!/usr/bin/env bash
# boot.sh LAB_DIR JOB_DIR [KERNEL ARGS]: boots the lab's guest without network on a throw-away copy of its disk, with
# JOB_DIR as /lab, and prints what its job.sh printed. Ends by itself within the time limit.
set -euo pipefail
lab=$1 job=$2 arguments=${3:-}
work=$(mktemp -d /tmp/taskcell-lab.XXXXXX)
trap 'rm -rf "$work"' EXIT
truncate -s 512M "$work/job.img"
mke2fs -q -t ext4 -d "$job" "$work/job.img"
cp --reflink=auto --sparse=always "$lab/root.img" "$work/root.img"
# Not kvm by itself: inside another virtual machine /dev/kvm can be there and hang or abort at boot.
accelerator=${LAB_ACCELERATOR:-tcg}
timeout "${LAB_TIMEOUT_S:-300}" qemu-system-x86_64 -machine q35,accel=$accelerator -cpu max -smp 2 -m 2048 -nographic \
  -no-reboot -net none -kernel "$lab/vmlinuz" -initrd "$lab/initrd" \
  -append "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=false loglevel=3 $arguments" \
  -drive file="$work/root.img",format=raw,if=virtio,cache=unsafe \
  -drive file="$work/job.img",format=raw,if=virtio,cache=unsafe </dev/null | tr -d '\r'

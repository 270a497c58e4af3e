#!/usr/bin/env bash
# boot.sh KERNEL_DIR INITRD ARGUMENTS [DISK...]: boots a guest without network, its console on stdin and stdout, until it
# powers off or LAB_TIMEOUT_S seconds are over. A DISK is a file and options: the guest changes it only where it says so
# (`FILE,snapshot=off`). With LAB_COUNTED its clock goes by the instructions of its one processor, a
# nanosecond each.
set -euo pipefail
kernel=$1 initrd=$2 arguments=$3
shift 3
drives=() processors=(-smp 2)
[ -z "${LAB_COUNTED:-}" ] || processors=(-smp 1 -icount shift=0)
for disk in "$@"; do drives+=(-drive "format=raw,if=virtio,cache=unsafe,snapshot=on,file=$disk"); done
# With the cmpxchg16b that QEMU 7.2 emulates, kernel 6.12 crashes in its allocator. Without no_timer_check a kernel on a busy
# host panics when its timer ticks late.
exec timeout --foreground "${LAB_TIMEOUT_S:-1800}" qemu-system-x86_64 -machine q35 -accel "${LAB_ACCELERATOR:-tcg,thread=multi}" \
  -cpu max,cx16=off "${processors[@]}" -m 3072 -nographic -no-reboot -net none -kernel "$kernel/vmlinuz" -initrd "$initrd" \
  -append "console=ttyS0 quiet loglevel=3 panic=-1 no_timer_check $arguments" "${drives[@]}"

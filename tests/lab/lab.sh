#!/usr/bin/env bash
# lab.sh: virtual machines with Debian 12, systemd and each cgroup mode, to test on. Run as root, with the programs built.
#
#   lab.sh [VARIANT...]      the variants' tests (default: all that ./dev check runs); results in build/lab/VARIANT.{xml,log}
#   lab.sh shell [VARIANT]   a prompt in the machine (default: unified)
#   lab.sh names             the variants
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
top=$(readlink -f "$here/../..")
build=$top/build/release
state=${TASKCELL_LAB_DIR:-/var/lib/taskcell-test/lab}
kvm_trial_s=8
work=
wanted=() # variants
finish() { [ -z "$work" ] || rm -rf "$work"; }
trap finish EXIT

plan() { python3 -B "$here/guest/run.py" "$@"; }

# Exit status 77, a skip, where the lab cannot run; a failure where nothing may be skipped.
must_be_able() {
  local reason='' program
  for program in qemu-system-x86_64 mmdebstrap mke2fs depmod cpio; do
    command -v $program >/dev/null || reason="no $program (Debian packages qemu-system-x86, mmdebstrap, e2fsprogs, kmod, cpio)"
  done
  [ "${TASKCELL_TEST_INSTALL:-yes}" = yes ] || [ -e "$state/image/recipe" ] ||
    reason="the guest's disk is not made, and --no-install was given"
  [ -n "$reason" ] || return 0
  echo "Skipped: $reason"
  [ -z "${TASKCELL_TEST_MUST_RUN:-}" ] || exit 1
  exit 77
}

# Room to work in, and the machine's disk, made where it is not there or its recipe has changed. One lab at a time.
prepare() {
  must_be_able
  mkdir -p "$state"
  exec 9>"$state/lock"
  flock 9
  work=$(mktemp -d "$state/run.XXXXXX")
}

# prepare_kernel SUITE FLAVOUR: sets `kernel`. Status 77 where the suite has none to be had.
prepare_kernel() {
  kernel=$state/kernel-$1-$2
  "$here/kernel.sh" "$1" "$2" "$kernel" || return 77
  "$here/initrd.sh" "$kernel" "$work/initrd"
}

# KVM only where a guest really comes up with it: inside another virtual machine the device can be there and hang.
choose_accelerator() {
  [ -z "${LAB_ACCELERATOR:-}" ] || return 0
  export LAB_ACCELERATOR=tcg,thread=multi
  [ -w /dev/kvm ] || return 0
  local seen=$state/accelerator boot
  boot=$(cat /proc/sys/kernel/random/boot_id)
  if [ "$(head -n 1 "$seen" 2>/dev/null)" != "$boot" ]; then
    echo "$boot" >"$seen"
    if (LAB_TIMEOUT_S=$kvm_trial_s LAB_ACCELERATOR=kvm \
      "$here/boot.sh" "$kernel" "$work/initrd" lab.trial </dev/null) >/dev/null 2>&1; then
      echo kvm >>"$seen"
    else
      echo "$LAB_ACCELERATOR" >>"$seen"
    fi
  fi
  LAB_ACCELERATOR=$(tail -n 1 "$seen")
}

# The second disk: a checkout without its sources but with its README and manuals, and the package of what was built.
make_lab_disk() { # VARIANT...
  local tree=$work/tree name
  mkdir -p "$tree/build/release/tests" "$tree/tests"
  cp "$top/dev" "$top/README.md" "$tree/"
  cp -r "$top/man" "$tree/"
  cp -r "$here" "$here/../support" "$tree/tests/"
  cp -r "$build/bin" "$tree/build/release/"
  cp -r "$build/tests/weak" "$tree/build/release/tests/"
  for name in $(plan programs "$@"); do cp "$build/tests/$name" "$tree/build/release/tests/"; done
  cpack --config "$build/CPackConfig.cmake" -D CPACK_PACKAGE_DIRECTORY="$tree/build/release/package" >"$work/cpack.log" 2>&1 ||
    { cat "$work/cpack.log" >&2; return 1; }
  rm -rf "$tree/build/release/package/_CPack_Packages"
  truncate -s $(($(du -sm "$tree" | cut -f1) * 5 / 4 + 16))M "$work/lab.img"
  mke2fs -q -t ext4 -d "$tree" "$work/lab.img"
}

# The disks of a full guest, in the order in which guest/ knows them.
full_disks() {
  local image=$state/image${policy:+-$policy}
  "$here/image.sh" "$image" "$policy"
  [ -e "$work/lab.img" ] || make_lab_disk "${wanted[@]}"
  disks=("$image/root.img" "$work/lab.img" "$kernel/modules.img")
}

run_variant() { # VARIANT
  local variant=$1 out=$top/build/lab started=$SECONDS prepared=0 judged=0 suite flavour mode kind policy words disks=()
  mkdir -p "$out"
  rm -f "$out/$variant".*
  read -r suite flavour mode kind policy words < <(plan show "$variant")
  prepare_kernel "$suite" "$flavour" || prepared=$?
  if [ $prepared = 77 ]; then
    echo "Skipped: lab: $variant: no kernel $flavour of $suite from ${TASKCELL_LAB_MIRROR:-http://deb.debian.org/debian}"
    [ -z "${TASKCELL_TEST_MUST_RUN:-}" ] || return 1
  fi
  [ $prepared = 0 ] || return $prepared
  choose_accelerator
  # Only an emulated processor counts.
  local -x LAB_ACCELERATOR=$LAB_ACCELERATOR LAB_COUNTED=
  [ "$kind" != counted ] || LAB_ACCELERATOR=tcg,thread=single LAB_COUNTED=yes
  [ "$policy" != none ] || policy=
  plan list "$variant" "$build/tests" >"$work/expected"
  if [ "$kind" = mini ]; then
    plan mini "$variant" >"$work/plan"
    "$here/mini.sh" "$kernel" "$build" "$work/plan" "$work/initrd"
  else
    full_disks
  fi
  rm -f "$work/results"
  truncate -s 16M "$work/results"
  "$here/boot.sh" "$kernel" "$work/initrd" "root=/dev/vda rw systemd.show_status=false lab.variant=$variant ${LAB_ROUNDS:+lab.rounds=$LAB_ROUNDS} $words" \
    "${disks[@]}" "$work/results,snapshot=off" </dev/null >"$out/$variant.log" 2>&1 ||
    echo "lab: $variant: the machine did not power off by itself"
  python3 -B "$here/judge.py" "$variant" "$work/results" "$work/expected" "$(cat "$kernel/release")" "$mode" \
    "$out/$variant.xml" || judged=$?
  # What a test's own child said is in no report.
  [ $judged != 1 ] || grep -A12 -E 'Failure.?$|lab: .* (FAILED|TIMEOUT|failure) ' "$out/$variant.log" | tail -n 80
  [ $judged != 2 ] || tail -n 30 "$out/$variant.log"
  echo "lab: $variant: $((SECONDS - started)) s; the machine's console is $out/$variant.log"
  return $judged
}

# A failure outweighs a skip. Beside variants that ran only the backports kernel may be missing: a suite has it at times.
run() {
  local variant status ran='' worst=0
  local -a all
  mapfile -t all < <(plan names)
  # shellcheck disable=SC2046 # names without spaces
  [ $# -gt 0 ] || set -- $(plan variants)
  wanted=("$@")
  for variant; do
    [[ " ${all[*]} " == *" $variant "* ]] || { echo "lab: no variant '$variant'; there are: ${all[*]}" >&2; exit 2; }
  done
  prepare
  for variant; do
    status=0
    run_variant "$variant" || status=$?
    [ $status = 77 ] || ran=yes
    case $status:$variant in
      0:* | 77:mini-backports) ;;
      77:*) [ $worst != 0 ] || worst=77 ;;
      *) worst=$status ;;
    esac
  done
  [ -n "$ran" ] || return 77
  return $worst
}

shell() {
  local suite flavour mode kind policy words disks=()
  read -r suite flavour mode kind policy words < <(plan show "$1")
  wanted=("$1")
  [ "$kind" = full ] || { echo "lab: $1 has no shell: it holds nothing but the tests" >&2; exit 2; }
  [ "$policy" != none ] || policy=
  prepare
  prepare_kernel "$suite" "$flavour"
  choose_accelerator
  full_disks
  echo "lab: $1, root on the console; the checkout's programs are in /lab. Leave with 'poweroff', or Ctrl-A x at once."
  LAB_TIMEOUT_S=0 "$here/boot.sh" "$kernel" "$work/initrd" "root=/dev/vda rw $words" "${disks[@]}"
}

case ${1:-} in
  shell) shell "${2:-unified}" ;;
  names) plan names ;;
  -*) sed -n '3,6p' "$0" >&2; exit 2 ;;
  *) run "$@" ;;
esac

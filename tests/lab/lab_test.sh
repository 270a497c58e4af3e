#!/usr/bin/env bash
# lab_test.sh NAME LAB_DIR BUILD_DIR: runs NAME.sh of this folder, or skips (77) where the host cannot run the lab.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
for program in qemu-system-x86_64 debootstrap mke2fs; do
  command -v $program >/dev/null && continue
  echo "Skipped: no $program (Debian packages qemu-system-x86, debootstrap, e2fsprogs)"
  [ -z "${TASKCELL_TEST_MUST_RUN:-}" ] && exit 77
  exit 1
done
if [ "${TASKCELL_TEST_INSTALL:-yes}" != yes ] && [ ! -e "$2/version" ]; then
  echo "Skipped: the guest's disk is not made, and --no-install was given"
  [ -z "${TASKCELL_TEST_MUST_RUN:-}" ] && exit 77
  exit 1
fi
(
  flock 9
  "$here/make_root.sh" "$2"
) 9>"$2.lock"
exec "$here/$1.sh" "$2" "$3"

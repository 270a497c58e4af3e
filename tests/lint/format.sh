#!/usr/bin/env bash
# format.sh ROOT: every source file is as clang-format writes it. 77 (skipped): there is no clang-format here.
set -euo pipefail
cd "$1"
command -v clang-format >/dev/null || { echo "Skipped: clang-format is not installed"; exit 77; }
mapfile -t files < <(find seccomp launcher probe gateway tests -name '*.cc' -o -name '*.h' | sort)
[ ${#files[@]} -gt 50 ] || { echo "only ${#files[@]} source files found: is '$1' the source tree?"; exit 1; }
if ! clang-format --dry-run -Werror "${files[@]}"; then
  echo "fix: clang-format -i the files named above"
  exit 1
fi
# The check can fail: the same file with one space more is refused.
if { cat "${files[0]}"; echo '  int   planted ;'; } | clang-format --dry-run -Werror --assume-filename=x.cc 2>/dev/null; then
  echo "clang-format accepted a planted breach: the check is worth nothing"
  exit 1
fi
echo "${#files[@]} files"

#!/usr/bin/env bash
# manual.sh ROOT: groff has nothing to say about any manual page. 77 (skipped): there is no groff here.
set -euo pipefail
cd "$1"
ls man/*.[1-9] >/dev/null 2>&1 || { echo "Skipped: no manual page is written yet"; exit 77; }
cd man
command -v groff >/dev/null || { echo "Skipped: groff is not installed"; exit 77; }
said() { groff -mdoc -ww -Tutf8 "$@" 2>&1 >/dev/null; }
status=0
for page in *.[1-9]; do
  output=$(said "$page")
  if [ -n "$output" ]; then
    printf '%s: groff says:\n%s\n' "$page" "$output"
    status=1
  fi
done
# The check can fail: an unknown macro is remarked upon.
[ -n "$(printf '.Dd today\n.Dt X 1\n.Os\n.Planted macro\n' | said -)" ] || { echo "groff let a planted macro pass"; exit 1; }
exit $status

#!/usr/bin/env bash
# manual.sh ROOT: groff has nothing to say about any manual page, and no item loses its first word. 77 (skipped): there is no groff here.
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
# An item that begins with a word that is a macro too: the page would say the opposite of "No ...".
swallowed='^\.It (No|An|At|In|Do|Ad|Nd|Es|Sm) [a-z]'
if grep -nE "$swallowed" -- *.[1-9]; then
  echo "the first word is a macro and vanishes: write \&No, \&An"
  status=1
fi
grep -qE "$swallowed" <<<'.It No planted way' || { echo "a planted item is let through"; exit 1; }
# The check can fail: an unknown macro is remarked upon.
[ -n "$(printf '.Dd today\n.Dt X 1\n.Os\n.Planted macro\n' | said -)" ] || { echo "groff let a planted macro pass"; exit 1; }
exit $status

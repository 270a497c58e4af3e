#!/usr/bin/env bash
# bench_root.sh DIRECTORY PROGRAM...: puts programs of this host and what they are linked with into a root that every
# engine can use, and prints the same as the files of an image (make_image.py).
set -euo pipefail
root=$1
shift
mkdir -p "$root"/{bin,proc,dev,sys,tmp,workspace,etc,run,agent}
files='"/agent": {"dir": true}, "/proc": {"dir": true}, "/tmp": {"dir": true}, "/workspace": {"dir": true}'
for program; do
  for file in "$(type -P "$program")" $(ldd "$(type -P "$program")" | grep -o '/[^ ]*'); do
    target=$file
    [ "$file" != "$(type -P "$program")" ] || target=/bin/$program
    install -D "$file" "$root$target"
    files+=", \"$target\": {\"from\": \"$file\"}"
  done
done
echo "{\"files\": {$files}}"

#!/usr/bin/env bash
# make_cli_image.sh: makes a root directory for cells from this host's own files (a shell, the usual small programs,
# their libraries) and the installed claude and codex, and imports the same as an image into the private Docker engine
# where one answers. Nothing is pulled. The directory is /var/lib/taskcell-test/cli-root, the image taskcell-test/cli:1.
# Idempotent; about 10 s and 700 MB (files are hard links where the installation is on the same file system).
set -euo pipefail
state=/var/lib/taskcell-test
root=$state/cli-root
clis=$state/clis
image=taskcell-test/cli
socket=${TASKCELL_TEST_DOCKER_SOCKET:-/run/taskcell-test/docker.sock}
programs="sh bash env cat ls cp mv rm mkdir rmdir ln chmod touch head tail cut tr sort uniq wc od dd seq sleep date id
  printf echo true false test stat readlink realpath basename dirname mktemp uname hostname df du tee xargs find grep sed
  awk timeout ps kill"

# What the root is made of and how: another recipe makes another root and image.
recipe=$(cat "$0" "$clis/versions" 2>/dev/null | sha256sum | cut -c1-32)
[ -f "$clis/versions" ] || { echo "make_cli_image.sh: run install_clis.sh first" >&2; exit 1; }

# copy FILE: the file and what it links to, below the new root at the same resolved path.
copy() {
  local file
  file=$(readlink -f "$1")
  [ -e "$new$file" ] || { install -d -m 0755 "$new$(dirname "$file")"; cp "$file" "$new$file"; }
  [ "$file" = "$1" ] || [ -e "$new$1" ] || { install -d -m 0755 "$new$(dirname "$1")"; ln -s "$file" "$new$1"; }
}

# copy_libraries FILE: the shared libraries it is linked with; none for a static program.
copy_libraries() {
  local library
  for library in $(ldd "$1" 2>/dev/null | grep -oE '/[^ ]+' || true); do
    # The host may reach /usr/lib through /lib: in the new root /lib is the same link.
    copy "$(readlink -f "$(dirname "$library")")/$(basename "$library")"
  done
}

make_root() {
  new=$(mktemp -d $state/cli-root.XXXXXX)
  trap 'rm -rf "$new"' EXIT
  chmod 0755 "$new"
  install -d -m 0755 "$new"/{usr/bin,usr/sbin,usr/lib,usr/lib64,etc,agent,workspace,proc,dev,sys,run,tmp}
  for name in bin sbin lib lib64; do ln -s usr/$name "$new/$name"; done
  # Where taskcell-loop is mounted: the launcher makes nothing in a root that is not its own.
  install -d -m 0755 "$new/run/taskcell"
  install -m 0644 /dev/null "$new/run/taskcell/loop"
  local program path
  for program in $programs; do
    path=$(PATH=/usr/bin:/usr/sbin type -P "$program") || continue
    copy "$path"
    copy_libraries "$path"
  done
  for program in claude codex; do
    path=$(readlink -f $clis/bin/$program)
    copy_libraries "$path"
    cp -l "$path" "$new/usr/bin/$program" 2>/dev/null || cp "$path" "$new/usr/bin/$program"
  done
  # What codex starts for the scripts of its code mode, and looks for beside itself.
  path=$(dirname "$(readlink -f $clis/bin/codex)")/codex-code-mode-host
  copy_libraries "$path"
  cp -l "$path" "$new/usr/bin/" 2>/dev/null || cp "$path" "$new/usr/bin/"
  printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$new/etc/passwd"
  printf 'root:x:0:\nnogroup:x:65534:\n' >"$new/etc/group"
  printf 'passwd: files\ngroup: files\nhosts: files\n' >"$new/etc/nsswitch.conf"
  # The one locale that is always there; without it bash warns into every command's output.
  [ ! -d /usr/lib/locale/C.utf8 ] || cp -r --parents /usr/lib/locale/C.utf8 "$new"
  echo "$recipe" >"$new/etc/recipe"
  chmod 0644 "$new"/etc/*
  rm -rf $root
  mv "$new" $root
  trap - EXIT
}

engine() { curl -fsS --max-time 120 --unix-socket "$socket" "$@"; }

import_image() {
  engine -o /dev/null http://engine/_ping 2>/dev/null || { echo "make_cli_image.sh: no engine at $socket, no image made"; return 0; }
  engine "http://engine/images/$image:1/json" 2>/dev/null | grep -qF "\"taskcell.recipe\":\"$recipe\"" && return 0
  tar -C $root --numeric-owner -cf - . | engine -o /dev/null -X POST -H 'content-type: application/x-tar' -T - \
    "http://engine/images/create?fromSrc=-&repo=$image&tag=1&changes=LABEL%20taskcell.recipe%3D$recipe"
}

[ "$(cat $root/etc/recipe 2>/dev/null)" = "$recipe" ] || make_root
import_image

#!/usr/bin/env bash
# Hands a user the cgroup directories below which taskcell may make limited cells for that user:
# `<mount point>/taskcell/uid-<uid>` on every hierarchy that holds memory, pids or cpu. Idempotent; needs root. The same
# directories as `taskcell-probe delegate` hands over (a test compares them), for when nothing is built yet, in containers
# whose root must be emptied first, and without a record.
#
#   delegate.sh up USER            make what is missing
#   delegate.sh down USER          remove it, with leftover cells below it
#   delegate.sh exec USER CMD...   run CMD as USER with every hierarchy's limits within its reach: on cgroup v2 a process
#                                  can only be limited below a cgroup it already is in
set -euo pipefail
moved=taskcell-moved # the cgroup of what was in a container's root

fail() { echo "delegate: $*" >&2; exit 1; }

# One line a hierarchy: "v1|v2 MOUNT_POINT". cgroup2 counts only where it offers one of the three controllers.
hierarchies() {
  awk '{
    for (i = 7; i <= NF && $i != "-"; i++);
    if ($(i + 1) == "cgroup" && $NF ~ /(^|,)(memory|pids|cpu)(,|$)/) print "v1", $5
    if ($(i + 1) == "cgroup2") print "v2", $5
  }' /proc/self/mountinfo | sort -u | while read -r kind mount; do
    if [ "$kind" = v2 ] && ! grep -qwE 'memory|pids|cpu' "$mount/cgroup.controllers"; then continue; fi
    echo "$kind" "$mount"
  done
}

# Turns the controllers that DIR has on for its children.
hand_on() {
  local controller
  for controller in memory pids cpu cpuset io; do
    grep -qw $controller "$1/cgroup.controllers" || continue
    grep -qw $controller "$1/cgroup.subtree_control" && continue
    echo "+$controller" >"$1/cgroup.subtree_control" 2>/dev/null || return 1
  done
}

# In a container the mounted root is an ordinary cgroup: it can hand controllers on only when it holds no process.
empty_mounted_root() {
  local pid
  [ -f "$1/cgroup.type" ] || return 0
  mkdir -p "$1/$moved"
  # Read whole first: a list that gets shorter while it is read leaves some out.
  for pid in $(cat "$1/cgroup.procs"); do echo "$pid" >"$1/$moved/cgroup.procs" 2>/dev/null || true; done
}

# The opposite: what was in the mounted root goes back there. Only for one that was emptied here.
refill_mounted_root() {
  local pid controller
  [ -d "$1/$moved" ] || return 0
  for controller in $(cat "$1/cgroup.subtree_control"); do echo "-$controller" >"$1/cgroup.subtree_control"; done
  for pid in $(cat "$1/$moved/cgroup.procs"); do echo "$pid" >"$1/cgroup.procs" 2>/dev/null || true; done
  rmdir "$1/$moved"
}

up() {
  local uid gid kind mount place
  uid=$(id -u "$1") gid=$(id -g "$1")
  while read -r kind mount; do
    place=$mount/taskcell/uid-$uid
    mkdir -p "$place" || fail "cannot make $place"
    # Only the directory: the limit files in it stay root's.
    chown "$uid:$gid" "$place"
    [ "$kind" = v2 ] || continue
    hand_on "$mount" || { empty_mounted_root "$mount" && hand_on "$mount"; } ||
      fail "cannot turn the controllers on in $mount/cgroup.subtree_control"
    hand_on "$mount/taskcell" || fail "cannot turn the controllers on in $mount/taskcell"
    # Where the user's own processes go: inner cgroups hold none.
    mkdir -p "$place/supervisor"
    chown "$uid:$gid" "$place/supervisor" {"$place","$place/supervisor"}/cgroup.{procs,threads,subtree_control}
  done < <(hierarchies)
}

down() {
  local uid kind mount place
  uid=$(id -u "$1")
  while read -r kind mount; do
    place=$mount/taskcell/uid-$uid
    [ -d "$place" ] || continue
    for _ in $(seq 50); do # a process that was killed just now still counts for a moment
      find "$place" -depth -type d -exec rmdir {} + 2>/dev/null && break
      sleep 0.1
    done
    [ ! -d "$place" ] || fail "$place still holds processes: $(find "$place" -name cgroup.procs -exec cat {} + | tr '\n' ' ')"
    # Root's own, which the launcher made by itself, goes with the last user's.
    rmdir "$mount/taskcell/uid-0" 2>/dev/null || true
    rmdir "$mount/taskcell" 2>/dev/null && refill_mounted_root "$mount" || true
  done < <(hierarchies)
}

exec_in() {
  local user=$1 uid gid kind mount
  shift
  uid=$(id -u "$user") gid=$(id -g "$user")
  up "$user"
  while read -r kind mount; do
    [ "$kind" = v2 ] || continue
    echo $$ >"$mount/taskcell/uid-$uid/supervisor/cgroup.procs"
  done < <(hierarchies)
  exec setpriv --reuid "$uid" --regid "$gid" --init-groups -- "$@"
}

case ${1:-} in
  up | down) [ $# = 2 ] || fail "usage: delegate.sh $1 USER"; "$1" "$2" ;;
  exec) [ $# -ge 3 ] || fail "usage: delegate.sh exec USER CMD..."; shift; exec_in "$@" ;;
  *) sed -n '2,10p' "$0" >&2; exit 2 ;;
esac

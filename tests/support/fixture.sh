#!/usr/bin/env bash
# The tests' own world: an unprivileged user, directories delegated to it in the cgroup tree, copies of the programs it
# may execute, and a Docker engine on a private socket. Everything is below the two roots here, so that it can be undone.
#
#   fixture.sh up BIN_DIR     make what is missing, copy the programs of BIN_DIR
#   fixture.sh engine-up      start the private Docker engine (needs docker.io)
#   fixture.sh engine-down    stop it
#   fixture.sh with-bridge COMMAND...
#                             run COMMAND beside an engine that has a bridge, both in a network of their own
#   fixture.sh with-remap COMMAND...
#                             the same with an engine that maps its containers' ids (userns-remap), without a bridge
#   fixture.sh clean          undo all of it
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
state=/var/lib/taskcell-test
run=/run/taskcell-test
user=taskcell-test
first_sub_id=2000000000 # far above what useradd gives out, so that no other user's range is touched

make_user() {
  getent group $user >/dev/null || groupadd --system $user
  getent passwd $user >/dev/null || useradd --system --gid $user --home-dir $state/home --shell /bin/sh $user
  grep -q "^$user:" /etc/subuid 2>/dev/null || echo "$user:$first_sub_id:65536" >>/etc/subuid
  grep -q "^$user:" /etc/subgid 2>/dev/null || echo "$user:$first_sub_id:65536" >>/etc/subgid
  install -d -m 0755 $state $run
  install -d -m 0700 -o $user -g $user $state/home
}

up() {
  make_user
  "$here/delegate.sh" up $user
  install -d -m 0755 $state/bin
  # A copy, because the checkout may be below a directory the user cannot enter.
  for program in "$1"/*; do install -m 0755 "$program" $state/bin/; done
}

engine_pid() {
  local pid
  pid=$(cat $run/docker.pid 2>/dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = dockerd ] && echo "$pid"
}

engine_answers() { curl -fsS --max-time 5 --unix-socket $run/docker.sock http://d/_ping >/dev/null 2>&1; }

# What dockerd and containerd make where they were not told to, what is inside first. What of it is not there yet is noted,
# so that it can go again.
beside_the_engine="/etc/docker/key.json /etc/docker /opt/containerd/bin /opt/containerd/lib /opt/containerd /run/docker/plugins
  /run/docker"
note_what_is_missing() {
  local path
  for path in $beside_the_engine; do
    [ -e "$path" ] || grep -qxsF "$path" $state/engine-made || echo "$path" >>$state/engine-made
  done
}

# Nothing that somebody put something into since, and nothing where another engine may use it.
remove_what_was_missing() {
  local path
  ! pgrep -x dockerd >/dev/null || return 0
  for path in $beside_the_engine; do
    grep -qxsF "$path" $state/engine-made || continue
    if [ -d "$path" ]; then rmdir "$path" 2>/dev/null || true; else rm -f "$path"; fi
  done
}

engine_up() {
  make_user
  if engine_answers; then return 0; fi
  command -v dockerd >/dev/null || { echo "fixture: dockerd is not installed (Debian package docker.io)" >&2; return 1; }
  note_what_is_missing
  install -d -m 0710 $state/docker
  # No bridge and no packet filter: the cells have no network, and the host's rules are left alone.
  setsid dockerd --host unix://$run/docker.sock --group $user --data-root $state/docker --exec-root $run/docker-exec \
    --pidfile $run/docker.pid --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
    >$run/docker.log 2>&1 </dev/null &
  for _ in $(seq 300); do
    if engine_answers; then return 0; fi
    sleep 0.2
  done
  tail -20 $run/docker.log >&2
  echo "fixture: the private Docker engine did not answer within 60 s" >&2
  return 1
}

engine_down() {
  local pid
  pid=$(engine_pid) || return 0
  kill "$pid"
  for _ in $(seq 150); do
    [ -d "/proc/$pid" ] || return 0
    sleep 0.1
  done
  kill -KILL "$pid"
}

unmount_below() {
  for mount in $(awk -v a="$1/" 'index($5, a) == 1 {print $5}' /proc/self/mountinfo | sort -r); do
    umount "$mount"
  done
}

own_engine_down() {
  kill "$own_engine" 2>/dev/null || true
  wait "$own_engine" || true
  unmount_below "$own_state"
  unmount_below "$own_run"
  rm -rf "$own_state" "$own_run"
}

# In a network namespace with nothing in it: a bridge leads nowhere.
beside_own_engine() {
  local kind=$1 status=0 options=()
  shift
  [ "$kind" != remap ] || options=(--userns-remap "$user" --bridge none)
  ip link set lo up
  note_what_is_missing
  own_state=$(mktemp -d "$state/$kind.XXXXXX")
  own_run=$(mktemp -d "$run/$kind.XXXXXX")
  chmod 0755 "$own_run"
  dockerd --host "unix://$own_run/docker.sock" --group $user --data-root "$own_state" --exec-root "$own_run/exec" \
    --pidfile "$own_run/docker.pid" --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false "${options[@]}" \
    >"$own_state/log" 2>&1 </dev/null &
  own_engine=$!
  trap own_engine_down EXIT
  for _ in $(seq 300); do
    if curl -fsS --max-time 5 --unix-socket "$own_run/docker.sock" http://d/_ping >/dev/null 2>&1; then
      TASKCELL_TEST_DOCKER_SOCKET="$own_run/docker.sock" "$@" || status=$?
      return $status
    fi
    sleep 0.2
  done
  tail -20 "$own_state/log" >&2
  echo "fixture: the Docker engine ($kind) did not answer within 60 s" >&2
  return 1
}

with_own_engine() {
  [ "$(id -u)" = 0 ] || { echo "fixture: an engine of a test's own needs root" >&2; return 1; }
  command -v dockerd >/dev/null || { echo "fixture: dockerd is not installed (Debian package docker.io)" >&2; return 1; }
  make_user
  unshare --net -- "$here/fixture.sh" beside-own-engine "$@"
}

# What killed programs of that user left below /tmp, unless one that lives holds it, and what went with it beside.
remove_scratch() { # UID
  local directory run
  for directory in /tmp/taskcell-*-"$1"-*; do
    run=${directory##*-}
    [[ -d $directory && ! -L $directory && $run =~ ^[0-9a-f]{32}$ ]] || continue
    flock -n "$directory" rm -rf "$directory" /dev/shm/taskcell-attack-"$run" || true
  done
}

# System V objects of the user.
remove_ipc_of_the_user() {
  local kind id
  for kind in m q s; do
    ipcs -$kind -c 2>/dev/null | awk -v u="$user" '$1 ~ /^[0-9]+$/ && $3 == u {print $1}' | while read -r id; do ipcrm -$kind "$id"; done
  done
}

clean() {
  engine_down
  remove_what_was_missing
  remove_scratch 0
  if getent passwd $user >/dev/null; then
    pkill -KILL -u $user || true
    remove_scratch "$(id -u $user)"
    remove_ipc_of_the_user
    "$here/delegate.sh" down $user
    userdel $user
  fi
  sed -i "/^$user:/d" /etc/subuid /etc/subgid 2>/dev/null || true
  unmount_below $state
  unmount_below $run
  rm -rf $state $run
}

case ${1:-} in
  up) up "$2" ;;
  engine-up) engine_up ;;
  engine-down) engine_down ;;
  with-bridge) shift; with_own_engine bridge "$@" ;;
  with-remap) shift; with_own_engine remap "$@" ;;
  beside-own-engine) shift; beside_own_engine "$@" ;;  # once it has its network
  clean) clean ;;
  *) sed -n '2,13p' "$0" >&2; exit 2 ;;
esac

#!/usr/bin/env bash
# The tests' own world: an unprivileged user, directories delegated to it in the cgroup tree, copies of the programs it
# may execute, and a Docker engine on a private socket. Everything is below the two roots here, so that it can be undone.
#
#   fixture.sh up BIN_DIR     make what is missing, copy the programs of BIN_DIR
#   fixture.sh engine-up      start the private Docker engine (needs docker.io)
#   fixture.sh engine-down    stop it
#   fixture.sh with-bridge COMMAND...
#                             run COMMAND beside an engine that has a bridge, both in a network of their own
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

engine_up() {
  make_user
  if engine_answers; then return 0; fi
  command -v dockerd >/dev/null || { echo "fixture: dockerd is not installed (Debian package docker.io)" >&2; return 1; }
  install -d -m 0710 $state/docker
  # No bridge and no packet filter: the cells have no network, and the host's rules are left alone.
  setsid dockerd --host unix://$run/docker.sock --group $user --data-root $state/docker --exec-root $run/docker-exec \
    --pidfile $run/docker.pid --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
    >$run/docker.log 2>&1 </dev/null &
  for _ in $(seq 100); do
    if engine_answers; then return 0; fi
    sleep 0.2
  done
  tail -20 $run/docker.log >&2
  echo "fixture: the private Docker engine did not answer within 20 s" >&2
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

bridge_engine_down() {
  kill "$bridge_engine" 2>/dev/null || true
  wait "$bridge_engine" || true
  unmount_below "$bridge_state"
  unmount_below "$bridge_run"
  rm -rf "$bridge_state" "$bridge_run"
}

# In a network namespace with nothing in it: the bridge leads nowhere.
beside_bridge() {
  local status=0
  ip link set lo up
  bridge_state=$(mktemp -d $state/bridge.XXXXXX)
  bridge_run=$(mktemp -d $run/bridge.XXXXXX)
  chmod 0755 "$bridge_run"
  dockerd --host "unix://$bridge_run/docker.sock" --group $user --data-root "$bridge_state" --exec-root "$bridge_run/exec" \
    --pidfile "$bridge_run/docker.pid" --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
    >"$bridge_state/log" 2>&1 </dev/null &
  bridge_engine=$!
  trap bridge_engine_down EXIT
  for _ in $(seq 100); do
    if curl -fsS --max-time 5 --unix-socket "$bridge_run/docker.sock" http://d/_ping >/dev/null 2>&1; then
      TASKCELL_TEST_DOCKER_SOCKET="$bridge_run/docker.sock" "$@" || status=$?
      return $status
    fi
    sleep 0.2
  done
  tail -20 "$bridge_state/log" >&2
  echo "fixture: the Docker engine with a bridge did not answer within 20 s" >&2
  return 1
}

with_bridge() {
  [ "$(id -u)" = 0 ] || { echo "fixture: an engine with a bridge needs root" >&2; return 1; }
  command -v dockerd >/dev/null || { echo "fixture: dockerd is not installed (Debian package docker.io)" >&2; return 1; }
  make_user
  unshare --net -- "$here/fixture.sh" beside-bridge "$@"
}

clean() {
  engine_down
  if getent passwd $user >/dev/null; then
    pkill -KILL -u $user || true
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
  with-bridge) shift; with_bridge "$@" ;;
  beside-bridge) shift; beside_bridge "$@" ;;  # with-bridge, once it has its network
  clean) clean ;;
  *) sed -n '2,11p' "$0" >&2; exit 2 ;;
esac

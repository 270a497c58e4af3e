#!/usr/bin/env bash
# demo.sh BIN_DIR: three tasks in native cells, from a home in the reference layout, by an unprivileged user, against a
# model provider on loopback: one that works, one that attacks, one that is refused. A user whom limits are delegated to
# runs them as that user; anybody else needs root, whose fixture makes such a user.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")

# A directory of the caller's for limits: its own cgroup, or one that root made.
has_place() {
  local place
  for place in "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)" /sys/fs/cgroup/{memory/,}taskcell/uid-"$(id -u)"; do
    [ ! -O "$place" ] || return 0
  done
  return 1
}

# Whether limits hold for the caller here, or in a scope of the caller's own manager, for all tasks together.
trial=("$1/taskcell-launch" --memory 64M --pids 16 --cpus 0.5 -- true)
if [ "$(id -u)" != 0 ] && ! { has_place && "${trial[@]}" 2>/dev/null; }; then
  scope=(systemd-run -q --user --scope -p Delegate=yes)
  ! "${scope[@]}" "${trial[@]}" 2>/dev/null || exec "${scope[@]}" "$0" "$@"
  if ! command -v sudo >/dev/null; then
    echo "demo: no limits are delegated to $(id -un), and there is no sudo: run ./dev demo as root, or have root run: $(readlink -f "$1")/taskcell-probe delegate --user $(id -un) --apply" >&2
    exit 1
  fi
  echo "demo: no limits are delegated to $(id -un): as root instead"
  exec sudo -- "$0" "$@"
fi

if [ "$(id -u)" = 0 ]; then
  user=taskcell-test
  bin=/var/lib/taskcell-test/bin
  "$here/fixture.sh" up "$1"
  work=$(mktemp -d /run/taskcell-test/demo.XXXXXX)
  as_user=("$here/delegate.sh" exec "$user") # its cgroup directories within reach
else
  user=$(id -un)
  bin=$(readlink -f "$1")
  work=$(mktemp -d /tmp/taskcell-demo.XXXXXX)
  as_user=(env)
fi
uid=$(id -u $user)
home=$work/home
key=sk-demo-$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
provider=
memory_place=
finish() {
  [ -z "$provider" ] || kill "$provider" 2>/dev/null || true
  [ -z "$memory_place" ] || chmod u+w "$memory_place"
  chmod -R u+w "$work" # the snapshots that wait to be used again are read-only
  rm -rf "$work"
}
trap finish EXIT
chmod 0755 "$work"

make_home() {
  install -d -m 0700 "$home" "$home/agents"
  cat >"$home/config.toml" <<EOF
[taskcell]
engine = "native"

[container.sandbox]
memory_bytes = 536870912
tmp_bytes = 67108864
workspace_bytes = 67108864
pids = 64

[[accounts]]
id = "demo"
provider = "openai"
api_key = "$key"
EOF
  head -c 32 /dev/urandom >"$home/.keyfile"
  chmod 0600 "$home/config.toml" "$home/.keyfile"
  for agent in researcher intruder; do
    install -d "$home/agents/$agent/SKILLS"
    cat >"$home/agents/$agent/agent.toml" <<EOF
[agent]
name = "$agent"
[runtime]
provider = "openai_compat"
[model]
preferred = "openai/demo-model"
[container]
sandbox_enabled = true
network_access = true
timeout_ms = 60000
EOF
    echo "You are $agent." >"$home/agents/$agent/SOUL.md"
  done
  cp "$bin/taskcell-attacker" "$here/ways_out.sh" "$home/agents/intruder/SKILLS/"
  [ "$(id -u)" != 0 ] || chown -R $user:$user "$home"
}

start_provider() { # SCENARIO: a name, or a file
  [ -z "$provider" ] || kill "$provider" 2>/dev/null || true
  rm -f "$work/port"
  python3 "$here/provider.py" --key "$key" --scenario "$1" --port-file "$work/port" --lifetime 120 \
    >"$work/provider.log" 2>&1 &
  provider=$!
  for _ in $(seq 400); do
    [ ! -s "$work/port" ] || break
    sleep 0.05
  done
  port=$(cat "$work/port") || { cat "$work/provider.log" >&2; return 1; }
}

run_task() { # AGENT PROMPT: the JSON result on stdout
  "${as_user[@]}" env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$work" \
    OPENAI_BASE_URL="http://127.0.0.1:$port/v1" "$bin/taskcell" run "$1" "$2" --home "$home" --json
}

# The directory below which the user's cells get their memory limit.
memory_place() {
  local place
  for place in /sys/fs/cgroup/memory/taskcell/uid-$uid /sys/fs/cgroup/taskcell/uid-$uid; do
    [ ! -O "$place" ] && [ "$(id -u)" != 0 ] || [ ! -d "$place" ] || { echo "$place"; return; }
  done
  place=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  echo "${place%/supervisor}"
}

make_home
started=$(date +%s)

echo "== 1. A task that works: it writes and reads files in /workspace with its tools and replies from what it found"
start_provider files
run_task researcher "Make a value, keep it in /workspace, and tell me what it is." >"$work/1.json"
python3 "$here/demo_report.py" receipt "$work/1.json"

echo
echo "== 2. A task that attacks: every attempt, and what came of it"
attacks="namespaces mounts devices cgroups network kernel host-file shadow write-usr uid-0 trace-init read-init-memory"
attacks+=" init-memory-file take-init-descriptors take-from-peer signal-init core-pattern cve-2024-21626-descriptor fork-bomb memory-bomb"
cat >"$work/attack.json" <<EOF
{"steps": [{"do": "shell", "command": "cp /agent/SKILLS/taskcell-attacker . && chmod 755 taskcell-attacker && ./taskcell-attacker secret=$home/.keyfile port=$port pids=4096 memory-bytes=17179869184 $attacks"},
           {"do": "shell", "command": "WAYS_MARK=sk-demo- WAYS_MODEL=demo-model bash /agent/SKILLS/ways_out.sh"}],
 "reply": "{all}"}
EOF
start_provider "$work/attack.json"
run_task intruder "Look around." >"$work/2.json"
python3 "$here/demo_report.py" attempts "$work/2.json"
echo
echo "   and its ways out of the cell, past the network there is not, through the provider, and to the credential"
python3 "$here/demo_report.py" ways "$work/2.json"

echo
echo "== 3. A task refused because its plan could not be met: the user may no longer make cgroups with a memory limit"
memory_place=$(memory_place)
chmod u-w "$memory_place"
status=0
run_task researcher "This must not run." >"$work/3.json" 2>"$work/3.err" || status=$?
cat "$work/3.err"
python3 "$here/demo_report.py" refusal "$work/3.json" $status

left=$(pgrep -u $user -c '^taskcell' || true)
runs=$({ find "$home/sandbox/runs" -mindepth 1 -maxdepth 1 2>/dev/null || true; } | wc -l)
cgroups=$({ find "$memory_place" -mindepth 1 -type d -name 'run-*' 2>/dev/null || true; } | wc -l)
echo
echo "left behind: $left processes, $runs run directories, $cgroups cgroups; $(($(date +%s) - started)) s in all"
[ "$left$runs$cgroups" = 000 ]

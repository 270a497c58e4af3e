#!/usr/bin/env bash
# bench_starts.sh BUILD_DIR ROUNDS [--starts | --counted]: start-up, whole tasks and size side by side with bwrap, runc, crun and
# a Docker engine; or the starts alone (start_bench.cc). Run as root.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
rounds=$2
mode=${3:-}
. "$here/bench_world.sh" "$1"
image=taskcell-bench:latest
provider=
finish() {
  [ -z "$provider" ] || kill "$provider" 2>/dev/null || true
  "$here/bench_ground.sh" --clear
}

files=$("$here/bench_ground.sh" "$work" "$build/tests")
if [ -n "$mode" ]; then
  "$build/tests/taskcell-bench" "$mode" "$programs" "$user" "$work" "$rounds"
  exit
fi

key=sk-bench-$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
make_home() { # ENGINE KEYS_OF_TASKCELL KEYS_OF_SANDBOX
  local home=$work/$1
  install -d -m 0700 "$home" "$home/agents" "$home/agents/bench"
  cat >"$home/config.toml" <<EOF
[taskcell]
engine = "$1"
$2
[container.sandbox]
$3
memory_bytes = 536870912
tmp_bytes = 16777216
workspace_bytes = 16777216
pids = 32

[[accounts]]
id = "bench"
provider = "openai"
api_key = "$key"
EOF
  chmod 0600 "$home/config.toml"
  cat >"$home/agents/bench/agent.toml" <<'EOF'
[agent]
name = "bench"
[runtime]
provider = "openai_compat"
[model]
preferred = "openai/bench-model"
[container]
sandbox_enabled = true
network_access = true
timeout_ms = 60000
EOF
  echo "You are bench." >"$home/agents/bench/SOUL.md"
  chown -R $user:$user "$home"
}
make_home native "" ""
make_home docker "engine_socket = \"$socket\"" "image = \"$image\""
python3 "$here/provider.py" --key "$key" --scenario hello --port-file "$work/port" --lifetime 1800 >"$work/provider.log" 2>&1 &
provider=$!
for _ in $(seq 100); do
  [ ! -s "$work/port" ] || break
  sleep 0.05
done
OPENAI_BASE_URL=http://127.0.0.1:$(cat "$work/port")/v1
export OPENAI_BASE_URL

arguments=("$programs" "$user" "$work" "$rounds")
if bench_engine; then
  python3 "$here/make_image.py" "$socket" "$image" "$files" >/dev/null
  arguments+=("$socket" "$image")
fi
"$build/tests/taskcell-bench" "${arguments[@]}"

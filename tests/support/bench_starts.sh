#!/usr/bin/env bash
# bench_starts.sh BUILD_DIR ROUNDS: start-up, whole tasks and size side by side with bwrap, runc, crun and a Docker engine.
# Run as root.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1")
rounds=$2
user=taskcell-test
image=taskcell-bench:latest
socket=${TASKCELL_TEST_DOCKER_SOCKET:-/run/taskcell-test/docker.sock}

"$here/fixture.sh" up "$build/bin"
started_engine=no
[ -S "$socket" ] || started_engine=yes
engine=no
! "$here/fixture.sh" engine-up || engine=yes
work=$(mktemp -d /run/taskcell-test/bench.XXXXXX)
provider=
finish() {
  [ -z "$provider" ] || kill "$provider" 2>/dev/null || true
  [ $started_engine = no ] || "$here/fixture.sh" engine-down
  "$here/bench_ground.sh" --clear
  rm -rf "$work"
}
trap finish EXIT
chmod 0755 "$work"

files=$("$here/bench_ground.sh" "$work" "$build/tests")

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

arguments=(/var/lib/taskcell-test/bin "$user" "$work" "$rounds")
if [ $engine = yes ]; then
  python3 "$here/make_image.py" "$socket" "$image" "$files" >/dev/null
  arguments+=("$socket" "$image")
fi
"$build/tests/taskcell-bench" "${arguments[@]}"

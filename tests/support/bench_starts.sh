#!/usr/bin/env bash
# bench_starts.sh BUILD_DIR ROUNDS: start-up, whole tasks and size side by side with bwrap, runc and a Docker engine. Run as
# root.
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
  runc delete --force taskcell-bench >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
chmod 0755 "$work"

# A root that every engine can use: two programs and what they are linked with.
rootfs=$work/rootfs
install -m 0755 "$build/tests/taskcell-bench-floor" "$work/floor"
files=$("$here/bench_root.sh" "$rootfs" true sleep)

# The same limits as the launcher gets: 64 MiB without swap, 32 processes, half a core.
mkdir "$work/bundle"
cat >"$work/bundle/config.json" <<EOF
{
  "ociVersion": "1.0.2",
  "process": {
    "terminal": false, "cwd": "/", "args": ["/bin/true"], "env": ["PATH=/bin"], "noNewPrivileges": true,
    "user": {"uid": 65534, "gid": 65534},
    "capabilities": {"bounding": [], "effective": [], "inheritable": [], "permitted": [], "ambient": []}
  },
  "root": {"path": "$rootfs", "readonly": true},
  "hostname": "bench",
  "mounts": [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "size=16m"]},
    {"destination": "/workspace", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "size=16m"]}
  ],
  "linux": {
    "cgroupsPath": "/taskcell-bench",
    "resources": {
      "memory": {"limit": 67108864, "swap": 67108864}, "pids": {"limit": 32}, "cpu": {"quota": 50000, "period": 100000}
    },
    "namespaces": [
      {"type": "pid"}, {"type": "network"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "cgroup"}
    ],
    "maskedPaths": ["/proc/kcore", "/proc/keys"], "readonlyPaths": ["/proc/sys"]
  }
}
EOF

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

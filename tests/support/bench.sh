#!/usr/bin/env bash
# bench.sh BUILD_DIR [ROUNDS]: start-up and size side by side with bwrap and runc. Run as root.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1")
rounds=${2:-100}

"$here/fixture.sh" up "$build/bin"
work=$(mktemp -d /tmp/taskcell-bench.XXXXXX)
trap 'runc delete --force taskcell-bench >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
chmod 0755 "$work"

# A root that both engines and the launcher can use: two programs and what they are linked with.
rootfs=$work/rootfs
mkdir -p "$rootfs"/{bin,proc,dev,sys,tmp,workspace,etc,run}
for program in true sleep; do
  cp "$(type -P $program)" "$rootfs/bin/"
  for library in $(ldd "$(type -P $program)" | grep -o '/[^ ]*'); do
    install -D "$library" "$rootfs$library"
  done
done

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

"$build/tests/taskcell-bench" /var/lib/taskcell-test/bin taskcell-test "$rootfs" "$work/bundle" "$rounds"

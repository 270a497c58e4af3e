#!/usr/bin/env bash
# bench_ground.sh WORK TESTS_DIR: puts into WORK what taskcell-bench starts /bin/true in: the floor's program from TESTS_DIR,
# rootfs, a root that every engine can use, and bundle, an OCI bundle with it and with the launcher's limits. Prints the same
# root as the files of an image (make_image.py).
# bench_ground.sh --clear: removes a container of such a bundle that was left.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
if [ "$1" = --clear ]; then
  for each in runc crun; do
    ! command -v $each >/dev/null || $each delete --force taskcell-bench >/dev/null 2>&1 || true
  done
  exit
fi
work=$1 tests=$2
rootfs=$work/rootfs
chmod 0755 "$work"
install -m 0755 "$tests/taskcell-bench-floor" "$work/floor"
"$here/bench_root.sh" "$rootfs" true sleep

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

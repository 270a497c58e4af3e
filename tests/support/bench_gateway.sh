#!/usr/bin/env bash
# bench_gateway.sh BUILD_DIR: what taskcell-gateway costs idle and with many tasks, natively and beside bare calls of a
# Docker engine's API. Run as root.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1")
image=taskcell-bench-gateway:latest
socket=${TASKCELL_TEST_DOCKER_SOCKET:-/run/taskcell-test/docker.sock}

"$here/fixture.sh" up "$build/bin"
started_engine=no
[ -S "$socket" ] || started_engine=yes
work=$(mktemp -d /run/taskcell-test/bench.XXXXXX)
finish() {
  curl -fsS --unix-socket "$socket" -X DELETE "http://engine/images/$image?force=1" >/dev/null 2>&1 || true
  [ $started_engine = no ] || "$here/fixture.sh" engine-down
  rm -rf "$work"
}
trap finish EXIT
mkdir -m 0755 "$work/homes"
chmod 0755 "$work"
arguments=(/var/lib/taskcell-test/bin taskcell-test "$work/homes")
if "$here/fixture.sh" engine-up; then
  python3 "$here/make_image.py" "$socket" "$image" "$("$here/bench_root.sh" "$work/rootfs" true)" >/dev/null
  arguments+=("$socket" "$image")
fi
python3 "$here/bench_gateway.py" "${arguments[@]}"

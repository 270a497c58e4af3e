#!/usr/bin/env bash
# bench_load.sh BUILD_DIR gateway|script|soak [NUMBER]: what bench_PART.py measures, with NUMBER runs or minutes; gateway also
# beside bare calls of a Docker engine's API. Run as root.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
part=$2
. "$here/bench_world.sh" "$1"

arguments=("$programs" "$user" "$work/homes" "${@:3}")
if [ "$part" = gateway ] && bench_engine; then
  image=taskcell-bench-gateway:latest
  finish() { curl -fsS --unix-socket "$socket" -X DELETE "http://engine/images/$image?force=1" >/dev/null 2>&1 || true; }
  python3 "$here/make_image.py" "$socket" "$image" "$("$here/bench_root.sh" "$work/rootfs" true)" >/dev/null
  arguments+=("$socket" "$image")
fi
python3 "$here/bench_$part.py" "${arguments[@]}"

#!/usr/bin/env bash
# bench.sh BUILD_DIR [PART...] [ROUNDS]: measures each part, or all of them but soak. Run as root.
#   starts    cells and tasks beside bwrap, runc, crun and a Docker engine (200 rounds)
#   walk      the audit of a million files beside find and the least there is to do (5 rounds, some three minutes), and snapshot
#   snapshot  the copy of an agent directory (20 rounds)
#   gateway   taskcell-gateway idle, with a thousand tasks, and beside bare calls of an engine's API (some two minutes)
#   egress    a task's way to its provider through the broker, beside the same requests straight to it (1,000 rounds, a minute)
#   script    whole scripts a second in native cells, through a gateway, an MCP server and the command (half a minute)
#   soak      a gateway under steady load, whose memory, descriptors, threads and cgroups must stay flat (30 rounds of a minute)
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1")
shift
parts=()
rounds=
for word; do
  case $word in
    starts | walk | snapshot | gateway | egress | script | soak) parts+=("$word") ;;
    *[!0-9]* | "") echo "dev: bench: '$word' is no part (starts, walk, snapshot, gateway, egress, script, soak) and no number of rounds" >&2; exit 2 ;;
    *) rounds=$word ;;
  esac
done
[ ${#parts[@]} != 0 ] || parts=(starts walk snapshot gateway egress script)

# On a disk where there is room for a million files.
place=
trap '[ -z "$place" ] || rm -rf "$place"' EXIT
snapshot() {
  place=${place:-$(mktemp -d /var/tmp/taskcell-bench.XXXXXX)}
  "$build/tests/taskcell-bench-snapshot" "$build/bin/taskcell-launch" "$place/snapshot" "${rounds:-20}"
}
for part in "${parts[@]}"; do
  case $part in
    starts) "$here/bench_starts.sh" "$build" "${rounds:-200}" ;;
    walk)
      place=$(mktemp -d /var/tmp/taskcell-bench.XXXXXX)
      "$build/tests/taskcell-bench-walk" "$build/bin" "$place/tree" 1000000 "${rounds:-5}"
      snapshot
      ;;
    snapshot) [[ " ${parts[*]} " == *" walk "* ]] || snapshot ;;
    gateway) "$here/bench_gateway.sh" "$build" ;;
    egress)
      place=${place:-$(mktemp -d /var/tmp/taskcell-bench.XXXXXX)}
      "$build/tests/taskcell-bench-egress" "$place" "${rounds:-1000}"
      ;;
    script) "$here/bench_script.sh" "$build" "${rounds:-500}" ;;
    soak) "$here/bench_soak.sh" "$build" "${rounds:-30}" ;;
  esac
done

#!/usr/bin/env bash
# bench.sh BUILD_DIR [PART...] [ROUNDS]: measures each part, or all of them but starts-v2 and soak. Run as root.
#   starts    cells and tasks beside bwrap, runc, crun and a Docker engine (200 rounds)
#   starts-v2 the starts where cgroups are version 2, in the lab's machine, which is emulated: system calls and instructions are
#             counted, times only indicate (10 rounds, some five minutes)
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
    starts | starts-v2 | walk | snapshot | gateway | egress | script | soak) parts+=("$word") ;;
    *[!0-9]* | "") echo "dev: bench: '$word' is no part (starts, starts-v2, walk, snapshot, gateway, egress, script, soak) and no number of rounds" >&2; exit 2 ;;
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
starts_v2() {
  local top
  top=$(readlink -f "$here/../..")
  LAB_ROUNDS=${rounds:-10} TASKCELL_TEST_MUST_RUN=1 "$here/../lab/lab.sh" starts
  tr -d '\r' <"$top/build/lab/starts.log" | sed -n '/^--- starts$/,/^--- end of starts$/{//!p}'
}
for part in "${parts[@]}"; do
  case $part in
    starts) "$here/bench_starts.sh" "$build" "${rounds:-200}" ;;
    starts-v2) starts_v2 ;;
    walk)
      place=$(mktemp -d /var/tmp/taskcell-bench.XXXXXX)
      "$build/tests/taskcell-bench-walk" "$build/bin" "$place/tree" 1000000 "${rounds:-5}"
      snapshot
      ;;
    snapshot) [[ " ${parts[*]} " == *" walk "* ]] || snapshot ;;
    gateway) "$here/bench_load.sh" "$build" gateway ;;
    egress)
      place=${place:-$(mktemp -d /var/tmp/taskcell-bench.XXXXXX)}
      "$build/tests/taskcell-bench-egress" "$place" "${rounds:-1000}"
      ;;
    script) "$here/bench_load.sh" "$build" script "${rounds:-500}" ;;
    soak) "$here/bench_load.sh" "$build" soak "${rounds:-30}" ;;
  esac
done

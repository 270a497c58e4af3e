#!/usr/bin/env bash
# cells_v2.sh LAB_DIR BUILD_DIR: whole cells on a real cgroup v2 host: the launcher under a user manager and in a place
# handed over by root, limits that bite, refusals where nothing is delegated, and the demo's three tasks.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
job=$(mktemp -d /tmp/taskcell-lab-job.XXXXXX)
trap 'rm -rf "$job"' EXIT
mkdir "$job/bin"
cp "$2"/bin/* "$job/bin/"
cp -r "$here/../support" "$job/support"
cat >"$job/job.sh" <<'EOF'
failures=0
say() { echo "lab: $1: $2"; [ "$2" = ok ] || failures=$((failures + 1)); }
is() { local name=$1; shift; if "$@"; then say "$name" ok; else say "$name" FAILED; fi; }
status_is() { local want=$1 got=0; shift; "$@" || got=$?; [ $got = "$want" ] || { echo "status $got, not $want"; return 1; }; }
launch=/lab/bin/taskcell-launch
for _ in $(seq 120); do [ -S /run/user/1000/bus ] && break; sleep 0.5; done
scope() { runuser -u alice -- env XDG_RUNTIME_DIR=/run/user/1000 systemd-run -q --user --scope -p Delegate=yes "$@"; }

is "launch in a scope of the user manager" status_is 7 scope $launch --memory 64M --pids 16 --cpus 0.5 -- sh -c 'exit 7'
is "one subordinate id" status_is 0 scope $launch --userns=subids --memory 64M -- sh -c '[ "$(id -u)" = 1000 ]'
scope $launch --memory 64M --pids 16 --report /tmp/report.json -- python3 -c 'x = bytearray(200 << 20)'
is "memory limit: the greedy program is killed" jq -e '.oom_kills >= 1 and .signal == 9' /tmp/report.json
rm -f /tmp/report.json
scope $launch --memory 64M --pids 8 --report /tmp/report.json -- sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 1 & done; wait' 2>/dev/null
is "pids limit: forks are refused" jq -e '.pids_refusals >= 1' /tmp/report.json
refused=$(runuser -u alice -- $launch -- true 2>&1) && say "nothing delegated" FAILED
echo "$refused"
is "nothing delegated: named with its remedy" grep -qE 'Delegate=yes.*resource_limits_unenforced' <<<"${refused//$'\n'/ }"
is "root without --uid becomes nobody" sh -c "$launch --memory 64M -- sh -c 'cat /proc/self/uid_map' | grep -qw 65534"
is "the demo" bash /lab/support/demo.sh /lab/bin
is "nothing left" sh -c '[ -z "$(find /sys/fs/cgroup -name "run-????????????????????????????????")" ]'
echo "lab: $failures failures"
EOF
LAB_TIMEOUT_S=${LAB_TIMEOUT_S:-600} "$here/boot.sh" "$1" "$job" | tee "$job/log"
grep -q '^lab: 0 failures' "$job/log"

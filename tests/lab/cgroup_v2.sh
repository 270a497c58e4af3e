#!/usr/bin/env bash
# cgroup_v2.sh LAB_DIR BUILD_DIR: runs the cgroup tests on a real cgroup v2 host with systemd, in the lab's guest: as root
# with a directory handed to a user, in a scope of a user manager, in a service that delegates, and in two places that do
# not delegate, where the remedy must fit. Needs the lab's disk (make_root.sh).
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
job=$(mktemp -d /tmp/taskcell-lab-job.XXXXXX)
trap 'rm -rf "$job"' EXIT
install "$2/tests/integration_launcher_cgroup" "$job/cgroup_test"
install "$here/../support/delegate.sh" "$job/"
cat >"$job/job.sh" <<'EOF'
failures=0
say() { echo "lab: $1: $2"; [ "$2" = ok ] || failures=$((failures + 1)); }
passes() { local name=$1; shift; "$@" --gtest_brief=1 && say "$name" ok || say "$name" FAILED; }
refuses() { # NAME TEXT COMMAND...
  local name=$1 text=$2; shift 2
  "$@" --gtest_filter='*DestructorLeavesNothing' 2>&1 | grep -q "cannot be enforced.*$text" && say "$name" ok || say "$name" FAILED
}
test=/lab/cgroup_test
useradd --system --create-home taskcell-test
/lab/delegate.sh up taskcell-test
/lab/delegate.sh up taskcell-test
passes "root, directory handed to a user" $test
for _ in $(seq 120); do [ -S /run/user/1000/bus ] && break; sleep 0.5; done
passes "scope of the user manager" runuser -u alice -- env XDG_RUNTIME_DIR=/run/user/1000 \
  systemd-run --user --scope -p Delegate=yes $test
passes "service with Delegate=" systemd-run -q --wait --pipe -p User=alice -p Delegate=yes $test
refuses "by su, nothing delegated" 'Delegate=yes to the .Service. section' runuser -u alice -- $test
refuses "service without Delegate=" 'Delegate=yes to the .Service. section' \
  systemd-run -q --wait --pipe -p User=alice $test
/lab/delegate.sh down taskcell-test
[ -z "$(find /sys/fs/cgroup -name 'run-????????????????????????????????' -o -path '/sys/fs/cgroup/taskcell*')" ] &&
  say "nothing left" ok || say "nothing left" FAILED
echo "lab: $failures failures"
EOF
LAB_TIMEOUT_S=${LAB_TIMEOUT_S:-600} "$here/boot.sh" "$1" "$job" | tee "$job/log" | grep -v '^Running main'
grep -q '^lab: 0 failures' "$job/log"

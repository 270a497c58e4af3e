#!/usr/bin/env bash
# run_tests.sh BUILD_DIR [--quick] [CTEST OPTIONS]: brings the fixture up, runs ctest, lists what was skipped and why, ends
# with ctest's own summary. --quick leaves the virtual machines out. Run as root.
set -euo pipefail
# The distribution's own programs first: what the tests were made with, and no wrappers that choose among versions.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1")
shift
options=()
for option; do
  if [ "$option" = --quick ]; then
    echo "dev: --quick: without the lab's virtual machines (the tests labelled lab)"
    options+=(-LE '^lab$')
  else
    options+=("$option")
  fi
done

"$here/fixture.sh" up "$build/bin"
trap '"$here/fixture.sh" engine-down' EXIT
"$here/fixture.sh" engine-up || echo "dev: no Docker engine: the tests labelled engine will be skipped"
{ "$here/install_clis.sh" && "$here/make_cli_image.sh"; } || echo "dev: no claude and codex: their tests will be skipped"

export TASKCELL_TEST_BIN=/var/lib/taskcell-test/bin
export TASKCELL_TEST_DOCKER_SOCKET=/run/taskcell-test/docker.sock
log=$build/Testing/last-run.log
mkdir -p "$build/Testing"
rm -f "$build/Testing/Temporary/LastTestsFailed.log"
status=0
run=(ctest --test-dir "$build" --output-on-failure --no-tests=error)
"${run[@]}" -j2 "${options[@]}" >"$log" 2>&1 || status=$?

# Where an engine, a program of others or a guest takes part, their own timing does too: up to three such tests may be
# tried once more, alone, and are named. A unit test, an attack or a race that failed has failed.
if [ $status != 0 ] && [ -s "$build/Testing/Temporary/LastTestsFailed.log" ]; then
  failed=$(cut -d: -f1 "$build/Testing/Temporary/LastTestsFailed.log" | sort)
  steady=$("${run[@]}" -N -L 'unit|lint|fuzz-smoke|attack|race|degraded' | sed -n 's/^ *Test *#\([0-9]*\):.*/\1/p' | sort)
  if [ "$(wc -l <<<"$failed")" -le 3 ] && [ -z "$(comm -12 <(echo "$failed") <(echo "$steady"))" ]; then
    grep -E -A40 '\*\*\*(Failed|Timeout|Exception)' "$log" | head -120 || true
    echo "dev: failed once, tried again alone:"
    if "${run[@]}" --rerun-failed >"$log.again" 2>&1; then status=0; fi
    sed -n 's/^ *[0-9]*\/[0-9]* Test *#[0-9]*:/ /p' "$log.again"
    cat "$log.again" >>"$log"
  fi
fi

grep -E '^ *[0-9]+/[0-9]+ Test.*\*\*\*' "$log" | sed 's/^/  /' || true
if grep -q 'Skipped' "$log"; then
  echo "skipped, with the reason each test gave:"
  grep -hE -A3 'Skipped$' "$build"/Testing/Temporary/LastTest.log | grep -vE '^--|\[|Skipped' | sort | uniq -c | sed 's/^/  /' || true
fi
[ $status = 0 ] || {
  echo "dev: tests failed; the whole output is $log; what failed first in each:"
  # A case's own lines, and a guest's, without what passed.
  awk '/^ *Start +[0-9]+: /{left=0; said=0}
       /: Failure$|Exception|^lab: [a-z-]+: (failure|error|skipped|not run|kernel|cgroup)|^FAIL: |^ERROR: |AssertionError|\*\*\*(Failed|Timeout|Exception)/{if (said < 4) {left=10; said++}}
       left > 0 {print substr($0, 1, 300); left--}' "$log" | sed 's/ \.\.\.\.*\*\*\*/ ***/' | head -n 400 | tail -n 160
}
sed -n '/tests passed/,$p' "$log"
exit $status

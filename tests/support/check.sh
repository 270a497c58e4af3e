#!/usr/bin/env bash
# check.sh [STEP...]: what ./dev check runs, in this order when no step is named; run as root. A failing step does not
# keep the others from running. Each step is a CMake preset of the same name, so it can be looked into by hand.
#
#   lint        rules of our own, formatting, manuals
#   asan-ubsan  unit tests and corpora under AddressSanitizer and UndefinedBehaviorSanitizer
#   ubsan-trap  integration tests with the static programs trapping on undefined behaviour (only when named)
#   tsan        the gateway's unit tests under ThreadSanitizer
#   race        whole launches by the thousand beside somebody who exchanges what they mount; whole tasks on Docker, their
#               agent directory attacked, as often as those that are native
#   fuzz        every fuzz target for a short while
#   tidy        clang-tidy over every program's sources
#   lab         every virtual machine of the lab
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
here=$PWD/tests/support
jobs=$(nproc)

# build PRESET [NINJA TARGET...]: quiet unless it fails.
build() {
  local preset=$1 log=build/$1.log
  shift
  mkdir -p build
  { cmake --preset "$preset" && ninja -C "build/$preset" -j "$jobs" "$@"; } >"$log" 2>&1 && return
  grep -E -A8 'error|FAILED' "$log" | head -60
  echo "the whole log is $log"
  return 1
}

# run_tests DIRECTORY CTEST_OPTION...: the failures with their output, then ctest's summary.
run_tests() {
  local directory=$1 log
  log=$1/check.log
  shift
  local status=0
  ctest --test-dir "$directory" --no-tests=error --output-on-failure -j "$jobs" "$@" >"$log" 2>&1 || status=$?
  [ $status = 0 ] || grep -E -A40 '\*\*\*(Failed|Timeout|Exception)' "$log" | head -200
  sed -n '/tests passed/p; /did not run/,/^$/p' "$log"
  return $status
}

step_lint() {
  build release lint_programs && run_tests build/release -L '^lint$'
}

step_asan_ubsan() {
  build asan-ubsan tests/unit/all tests/fuzz/all tests/support/all || return
  ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1 \
    run_tests build/asan-ubsan -L '^(unit|fuzz-smoke)$'
}

step_ubsan_trap() {
  build ubsan-trap taskcell taskcell-launch taskcell-init taskcell-host taskcell-loop taskcell-probe taskcell-breaker tests/integration/all tests/support/all || return
  "$here/fixture.sh" up build/ubsan-trap/bin || return
  TASKCELL_TEST_BIN=/var/lib/taskcell-test/bin run_tests build/ubsan-trap -L '^integration$'
}

# Address space randomisation of newer kernels leaves no room for this sanitizer's shadow: setarch -R turns it off.
step_tsan() {
  build tsan tests/unit/gateway/all tests/support/all || return
  local status=0
  TSAN_OPTIONS=halt_on_error=1 setarch -R ctest --test-dir build/tsan/tests/unit/gateway --no-tests=error \
    --output-on-failure -j "$jobs" >build/tsan/check.log 2>&1 || status=$?
  [ $status = 0 ] || grep -E -A40 '\*\*\*(Failed|Timeout|Exception)' build/tsan/check.log | head -200
  sed -n '/tests passed/p' build/tsan/check.log
  return $status
}

step_race() {
  build release || return
  "$here/fixture.sh" up build/release/bin || return
  "$here/fixture.sh" engine-up || return
  local status=0
  # Not by ctest, whose time limit is meant for the usual number of rounds.
  local -x TASKCELL_TEST_MUST_RUN=1 TASKCELL_TEST_BIN=/var/lib/taskcell-test/bin
  {
    TASKCELL_RACE_LAUNCHES=20000 build/release/tests/race_launch --gtest_filter='*SharedVolumeRaceTest*'
    status=$?
    TASKCELL_RACE_LAUNCHES=2000 build/release/tests/race_launch --gtest_filter='-*SharedVolumeRaceTest*' || status=1
    TASKCELL_RACE_LAUNCHES=2000 build/release/tests/race_pinned || status=1
    TASKCELL_RACE_ROUNDS=72 TASKCELL_TEST_DOCKER_SOCKET=/run/taskcell-test/docker.sock \
      build/release/tests/task_docker --gtest_filter='Attacks/AgentDirectoryRaceTest.*' || status=1
  } >build/race.log 2>&1
  grep -E -A40 'Failure$' build/race.log | head -200
  grep -E 'PASSED|FAILED' build/race.log
  "$here/fixture.sh" engine-down
  return $status
}

step_fuzz() {
  build fuzz taskcell_fuzzers && run_tests build/fuzz -L '^fuzz$'
}

# Sources one by one from the compilation database; the first that fails does not stop the rest.
step_tidy() {
  mkdir -p build
  cmake --preset tidy >build/tidy.log 2>&1 || { cat build/tidy.log; return 1; }
  local status=0
  git ls-files -z 'seccomp/*.cc' 'launcher/*.cc' 'probe/*.cc' 'gateway/*.cc' |
    xargs -0 -P "$jobs" -n 2 clang-tidy --quiet -p build/tidy >build/tidy.log 2>build/tidy-noise.log || status=1
  grep -E 'error:|warning:' build/tidy.log | sort -u | head -100
  return $status
}

step_lab() {
  build release && tests/lab/lab.sh
}

steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(lint asan-ubsan tsan race fuzz tidy lab)
failed=()
summary=()
for step in "${steps[@]}"; do
  run=step_${step//-/_}
  declare -F "$run" >/dev/null || { echo "check: unknown step '$step'" >&2; exit 2; }
  echo "check: $step"
  started=$SECONDS
  verdict=passed
  "$run" || { verdict=FAILED; failed+=("$step"); }
  summary+=("$(printf '%-11s %-7s %4d s' "$step" $verdict $((SECONDS - started)))")
done
printf '  %s\n' "${summary[@]}"
[ ${#failed[@]} = 0 ] || { echo "check: failed: ${failed[*]}"; exit 1; }
echo "check: all steps passed"

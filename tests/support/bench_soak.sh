#!/usr/bin/env bash
# bench_soak.sh BUILD_DIR MINUTES: a gateway under steady load for so long. Run as root.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
build=$(readlink -f "$1")

"$here/fixture.sh" up "$build/bin"
work=$(mktemp -d /run/taskcell-test/bench.XXXXXX)
trap 'rm -rf "$work"' EXIT
mkdir -m 0755 "$work/homes"
chmod 0755 "$work"
python3 "$here/bench_soak.py" /var/lib/taskcell-test/bin taskcell-test "$work/homes" "$2"

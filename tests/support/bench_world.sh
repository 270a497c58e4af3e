# bench_world.sh BUILD_DIR: sourced by the parts of the bench, with `here` set, that run the programs as the tests' user. Sets
# programs, user and a directory `work`, in which `homes` is for the user; bench_engine sets `socket`. It all goes with the
# shell, which may have a `finish` for what is its own.
build=$(readlink -f "$1")
user=taskcell-test
programs=/var/lib/taskcell-test/bin
socket=${TASKCELL_TEST_DOCKER_SOCKET:-/run/taskcell-test/docker.sock}
own_engine=no
"$here/fixture.sh" up "$build/bin"
work=$(mktemp -d /run/taskcell-test/bench.XXXXXX)
finish() { :; }
leave_world() {
  finish
  [ $own_engine = no ] || "$here/fixture.sh" engine-down
  rm -rf "$work"
}
trap leave_world EXIT
chmod 0755 "$work"
mkdir -m 0755 "$work/homes"

# The tests' Docker engine, which goes again where it was not there. A failure where there can be none.
bench_engine() {
  [ -S "$socket" ] || own_engine=yes
  "$here/fixture.sh" engine-up
}

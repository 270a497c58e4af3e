#!/usr/bin/env bash
# install.sh GROUP...: installs the Debian packages a group of ./dev's commands needs; says what it will install first,
# and nothing when there is nothing to do. Groups: build run test lab bench check.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive

packages_of() {
  case $1 in
    build) echo g++ cmake ninja-build pkg-config python3 libseccomp-dev libcap-dev nlohmann-json3-dev libtomlplusplus-dev \
      libcurl4-openssl-dev libcli11-dev libgtest-dev libgmock-dev libbenchmark-dev libssl-dev libsqlite3-dev libmicrohttpd-dev \
      file dpkg-dev ;; # cpack's
    run) echo uidmap util-linux python3 procps ;;
    test) echo docker.io git jq curl procps iproute2 xxd groff mandoc clang-format xz-utils psmisc python3-yaml openssl dpkg-dev
      # Another distribution of nodejs may bring npm; Debian's would not go beside it.
      command -v npm >/dev/null || echo npm ;;
    lab) echo qemu-system-x86 mmdebstrap e2fsprogs kmod cpio python3 file dpkg-dev ;;
    bench) echo bubblewrap runc crun docker.io curl podman ;;
    check) echo clang clang-tidy clang-format libclang-rt-14-dev lintian ;;
    *) echo "install.sh: unknown group $1" >&2; exit 2 ;;
  esac
}

missing=()
for group in "$@"; do
  for package in $(packages_of "$group"); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "install.sh: this host has no apt-get; install by hand: ${missing[*]}" >&2
  exit 1
fi
echo "dev: installing Debian packages: ${missing[*]}"
log=$(mktemp /tmp/taskcell-install.XXXXXX)
trap 'rm -f "$log"' EXIT
# No service may start because of an installation: the tests run their own engine on a private socket.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
  trap 'rm -f "$log" $policy' EXIT
fi
if ! { apt-get -qq update && apt-get -qq install -y --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  echo "install.sh: apt-get failed" >&2
  exit 1
fi

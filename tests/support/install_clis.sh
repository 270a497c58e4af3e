#!/usr/bin/env bash
# install_clis.sh [DIR]: installs the real Claude Code and Codex programs from the npm registry below DIR (default
# /var/lib/taskcell-test/clis). Nothing to do when these versions are there. About 730 MB on disk.
set -euo pipefail
prefix=${1:-/var/lib/taskcell-test/clis}
claude=${TASKCELL_TEST_CLAUDE_VERSION:-2.1.197}
codex=${TASKCELL_TEST_CODEX_VERSION:-0.171.0}

[ "$(cat "$prefix/versions" 2>/dev/null)" != "claude $claude codex $codex" ] || exit 0
if [ "${TASKCELL_TEST_INSTALL:-yes}" != yes ]; then
  echo "install_clis.sh: claude and codex are not installed, and --no-install was given" >&2
  exit 1
fi
command -v npm >/dev/null || { echo "install_clis.sh: npm is missing (Debian package npm)" >&2; exit 1; }

echo "dev: installing @anthropic-ai/claude-code $claude and @openai/codex $codex from the npm registry into $prefix"
install -d -m 0755 "$prefix"
log=$(mktemp "$prefix/npm.XXXXXX")
if ! timeout 600 npm install --prefix "$prefix" --no-fund --no-audit --loglevel=error \
  "@anthropic-ai/claude-code@$claude" "@openai/codex@$codex" >"$log" 2>&1; then
  tail -20 "$log" >&2
  rm -f "$log"
  echo "install_clis.sh: npm failed" >&2
  exit 1
fi
rm -f "$log"
# The programs themselves, whatever wrappers the packages put around them.
install -d -m 0755 "$prefix/bin"
ln -sfn "$(readlink -f "$prefix/node_modules/.bin/claude")" "$prefix/bin/claude"
ln -sfn "$(echo "$prefix"/node_modules/@openai/codex-linux-*/vendor/*/bin/codex)" "$prefix/bin/codex"
# Started once, where nothing can be reached.
alone=()
[ "$(id -u)" != 0 ] || alone=(unshare --net --)
for program in claude codex; do "${alone[@]}" "$prefix/bin/$program" --version >/dev/null; done
echo "claude $claude codex $codex" >"$prefix/versions"

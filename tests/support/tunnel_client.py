#!/usr/bin/python3
"""What a program in a cell may try with its listener for tunnels.

usage: tunnel_client.py CA_FILE WORD...

Each WORD is one attempt; its outcome is printed as a line "WORD=OUTCOME".
  get:HOST[:PORT]/PATH        https through HTTPS_PROXY, as any program does it
  tls:HOST:PORT:NAME          CONNECT to HOST:PORT, then a TLS client that asks for NAME ("-": none)
  say:TEXT                    TEXT to the listener, with \\r, \\n, \\0 as two letters each
  nested:HOST:PORT            CONNECT to HOST:PORT, in there CONNECT to another place
  again:HOST:PORT             after a refusal, CONNECT to HOST:PORT on the same connection
  connect:ADDRESS:PORT        a connection without the listener
  udp:ADDRESS:PORT            a datagram
  name:HOST                   resolve it here
An OUTCOME is what came back, the code of a refusal, "alert", or the error's name.
"""

import errno
import os
import re
import socket
import ssl
import sys
import urllib.error
import urllib.request

PATIENCE = 20


def proxy():
    host, port = re.fullmatch(r"http://([^:]*):(\d+)", os.environ["HTTPS_PROXY"]).groups()
    return socket.create_connection((host, int(port)), PATIENCE)


def read_all(stream):
    data = b""
    try:
        while more := stream.recv(65536):
            data += more
    except ConnectionResetError:
        pass
    return data


def outcome_of(data):
    if code := re.search(rb"(?i)\r\nx-taskcell-egress: (\S+)", data):
        assert b'"code":"' + code[1] + b'"' in data, data
        return code[1].decode()
    if data.startswith(b"\x15\x03\x03\x00\x02\x02\x31"):
        return "alert"
    return "closed" if not data else repr(data[:60])


def connect_request(place):
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n\r\n".encode()


def open_tunnel(place):
    """The connection once CONNECT was answered with 200, or the outcome."""
    stream = proxy()
    stream.sendall(connect_request(place))
    head = b""
    while b"\r\n\r\n" not in head:
        more = stream.recv(1)
        if not more:
            return None, outcome_of(head)
        head += more
    if head.startswith(b"HTTP/1.1 200 "):
        return stream, ""
    return None, outcome_of(head + read_all(stream))


def context(ca_file, checks=True):
    made = ssl.create_default_context(cafile=ca_file)
    if not checks:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def get(ca_file, place):
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({"https": os.environ["HTTPS_PROXY"]}),
        urllib.request.HTTPSHandler(context=context(ca_file)))
    body = opener.open("https://" + place, timeout=PATIENCE).read()
    return body.decode() if len(body) < 100 else str(len(body))


def tls(ca_file, what):
    host, port, name = what.split(":")
    stream, outcome = open_tunnel(f"{host}:{port}")
    if stream is None:
        return outcome
    # A sniff of the raw answer: the TLS library would only say that there was an alert.
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context(ca_file, False).wrap_bio(
        incoming, outgoing, server_hostname=None if name == "-" else name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    stream.sendall(outgoing.read())
    first = stream.recv(7)
    return "hello" if first.startswith(b"\x16") else outcome_of(first)


def say(_ca_file, text):
    text = text.replace("\\r", "\r").replace("\\n", "\n").replace("\\0", "\0")
    with proxy() as stream:
        stream.sendall(text.encode("latin-1"))
        return outcome_of(read_all(stream))


def nested(_ca_file, place):
    stream, outcome = open_tunnel(place)
    if stream is None:
        return outcome
    stream.sendall(connect_request("other.example.org:443"))
    return outcome_of(read_all(stream))


def again(_ca_file, place):
    with proxy() as stream:
        stream.sendall(connect_request("other.example.org:443") + connect_request(place))
        data = read_all(stream)
        return f"{outcome_of(data)}, {data.count(b'HTTP/1.1 ')} answer"


def connect(_ca_file, place):
    address, port = place.split(":")
    with socket.create_connection((address, int(port)), 3):
        return "connected"


def udp(_ca_file, place):
    address, port = place.split(":")
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (address, int(port)))
    return "sent"


def name(_ca_file, host):
    return socket.getaddrinfo(host, 443)[0][4][0]


def attempt(ca_file, word):
    action, _, what = word.partition(":")
    try:
        return globals()[action](ca_file, what)
    except urllib.error.URLError as error:
        return re.sub(r"\s+", " ", f"URLError {error.reason}")
    except socket.gaierror:
        return "no name"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, repr(error))


def main():
    for word in sys.argv[2:]:
        print(f"{word}={attempt(sys.argv[1], word)}", flush=True)


main()

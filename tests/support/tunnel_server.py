#!/usr/bin/python3
"""A TLS server on every address of its network namespace, for tests of tunnels.

usage: tunnel_server.py DIRECTORY PORT...

DIRECTORY holds cert.pem and key.pem; of each connection a JSON line goes to DIRECTORY/server.log: to
which address and port it came, and, once known, the server name and the request. The last PORTs but
the first speak no TLS. Prints "ready" once it listens; ends with its standard input.

GET /hello            "the file"
GET /big              8 MiB
GET /redirect         to https://other.example.org/hello
GET /move/NAME/ADDR   gives NAME another address in DIRECTORY/hosts
POST /...             {"text": "pong"}, or 401 without the header x-goog-api-key: DIRECTORY/key
"""

import json
import os
import socket
import ssl
import sys
import threading

DIRECTORY = sys.argv[1]
LOCK = threading.Lock()


def note(**what):
    with LOCK, open(os.path.join(DIRECTORY, "server.log"), "a") as log:
        log.write(json.dumps(what) + "\n")


def read_request(stream):
    data = b""
    while b"\r\n\r\n" not in data:
        more = stream.recv(65536)
        if not more:
            break
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    while len(body) < int(headers.get("content-length", 0)):
        body += stream.recv(65536)
    return lines[0].split(" "), headers


def move(name, address):
    path = os.path.join(DIRECTORY, "hosts")
    with open(path) as hosts:
        lines = [line for line in hosts if name not in line]
    # In place: the file is mounted over /etc/hosts.
    with open(path, "w") as hosts:
        hosts.write("".join(lines) + f"{address} {name}\n")


def answer(stream, request, headers):
    status, extra, body = "200 OK", "", b"the file"
    method, path = (request + ["", ""])[:2]
    if path == "/big":
        body = b"x" * (8 << 20)
    elif path == "/redirect":
        status, extra, body = "302 Found", "Location: https://other.example.org/hello\r\n", b""
    elif path.startswith("/move/"):
        _, _, name, address = path.split("/")
        move(name, address)
    elif method == "POST":
        with open(os.path.join(DIRECTORY, "key")) as key:
            known = headers.get("x-goog-api-key") == key.read()
        status = "200 OK" if known else "401 Unauthorized"
        body = json.dumps({"text": "pong"} if known else {"error": "no"}).encode()
    head = f"HTTP/1.1 {status}\r\n{extra}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    stream.sendall(head.encode() + body)


def serve(connection, context):
    address, port = connection.getsockname()[:2]
    note(address=address, port=port)
    try:
        if context is None:
            connection.recv(4096)
            return
        with context.wrap_socket(connection, server_side=True) as stream:
            request, headers = read_request(stream)
            note(address=address, port=port, name=getattr(stream, "asked", None), request=request)
            answer(stream, request, headers)
            stream.unwrap()
    except OSError as error:
        note(address=address, port=port, error=str(error))
    finally:
        connection.close()


def listen(port, context):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", port))
    listener.listen(64)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def keep_name(stream, name, _context):
    stream.asked = name


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(DIRECTORY, "cert.pem"), os.path.join(DIRECTORY, "key.pem"))
    context.sni_callback = keep_name
    for index, port in enumerate(sys.argv[2:]):
        listen(int(port), context if index == 0 else None)
    # In one write: whoever waits for it closes the pipe then.
    os.write(1, b"ready\n")
    sys.stdin.read()


main()

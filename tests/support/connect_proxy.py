#!/usr/bin/env python3
"""A proxy that takes CONNECT and leads every tunnel to one port of loopback, or, with --to 0, to wherever
it is asked to: the kind that stops nobody.

It writes one line of JSON for each request: {"line": ..., "headers": [...]}; with --refuse it
answers that status instead.
"""

import argparse
import json
import os
import socket
import threading
import time

HEAD_BYTES = 8192


def read_head(client):
    head = b""
    while b"\r\n\r\n" not in head and len(head) < HEAD_BYTES:
        more = client.recv(1)
        if not more:
            break
        head += more
    return head.decode("latin-1").split("\r\n")


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def place(line, options):
    if options.to:
        return "127.0.0.1", options.to
    host, _, port = line.split(" ")[1].rpartition(":")
    return host.strip("[]"), int(port)


def serve(client, options, log):
    with client:
        line, *headers = read_head(client)
        log.write(json.dumps({"line": line, "headers": [h for h in headers if h]}) + "\n")
        log.flush()
        if options.refuse:
            client.sendall(f"HTTP/1.1 {options.refuse} No\r\nContent-Length: 0\r\n\r\n".encode())
            return
        try:
            server = socket.create_connection(place(line, options))
        except (OSError, ValueError):
            client.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            return
        with server:
            client.sendall(b"HTTP/1.1 200 Connection established\r\nX-Proxy: seen\r\n\r\n")
            back = threading.Thread(target=copy, args=(server, client), daemon=True)
            back.start()
            copy(client, server)
            back.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--to", type=int, required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--refuse", type=int, default=0)
    parser.add_argument("--lifetime", type=float, default=300.0)
    options = parser.parse_args()
    threading.Thread(target=lambda: (time.sleep(options.lifetime), os._exit(3)),
                     daemon=True).start()
    listener = socket.create_server(("127.0.0.1", 0))
    with open(options.port_file + ".new", "w", encoding="ascii") as file:
        file.write(f"{listener.getsockname()[1]}\n")
    os.rename(options.port_file + ".new", options.port_file)
    with open(options.log, "a", encoding="utf-8") as log:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=serve, args=(client, options, log), daemon=True).start()


if __name__ == "__main__":
    main()

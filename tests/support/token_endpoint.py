#!/usr/bin/env python3
"""A token endpoint (RFC 6749 section 6) with TLS on loopback, for tests.

It knows one login, whose refresh token is `refresh-0`; each renewal gives the access token
NAME-<n> (n = 1, 2, ...) and the refresh token `refresh-<n>`. A refresh token that was used is burnt,
unless --grace N lets the N before the newest be used again. Paths:
  /token      renews
  /plain      renews without a new refresh token
  /over       400 invalid_grant, and words that nobody is to repeat
  /hold       renews once there is a file LOG.go
  /mute       never answers     /endless  an answer without an end    /huge    1 MiB of answer
  /half       cut in the middle /nonsense 200, no JSON   /empty  200, {}  /moved  302 to /token
  /broken     503
Every request is a line of JSON in the log before it is answered.
"""

import argparse
import json
import os
import ssl
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()
state = {"newest": 0}
options = None


def renew(asked):
    """The number of the renewal, or None where the token is burnt."""
    with lock:
        valid = range(max(0, state["newest"] - options.grace), state["newest"] + 1)
        if asked not in [f"refresh-{n}" for n in valid]:
            return None
        state["newest"] += 1
        return state["newest"]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments):
        pass

    def answer(self, status, body, **headers):
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.note("")
        self.answer(404, "{}")

    def note(self, body):
        with lock, open(options.log, "a", encoding="utf-8") as log:
            log.write(json.dumps({"method": self.command, "path": self.path, "body": body,
                                  "headers": {name.lower(): value for name, value in self.headers.items()}}) + "\n")

    def fields(self, body):
        if self.headers["content-type"] == "application/json":
            return json.loads(body)
        return dict(urllib.parse.parse_qsl(body, strict_parsing=True))

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.note(body)
        fields = self.fields(body)
        sound = fields.get("grant_type") == "refresh_token" and fields.get("client_id") == "client-1"
        if not sound:
            return self.answer(400, '{"error":"invalid_request"}')
        return getattr(self, "on_" + self.path[1:])(fields["refresh_token"])

    def on_token(self, asked, rotate=True):
        number = renew(asked)
        if number is None:
            return self.answer(400, '{"error":"invalid_grant"}')
        tokens = {"access_token": f"{options.access}-{number}" if options.numbered
                  else options.access, "token_type": "Bearer", "expires_in": 3600}
        if rotate:
            tokens["refresh_token"] = f"refresh-{number}"
        else:
            with lock:
                state["newest"] -= 1
        return self.answer(200, json.dumps(tokens))

    def on_plain(self, asked):
        return self.on_token(asked, rotate=False)

    def on_over(self, asked):
        return self.answer(400, json.dumps({"error": "invalid_grant",
                                            "error_description": f"{asked} is revoked"}))

    def on_hold(self, asked):
        until = time.monotonic() + 60
        while not os.path.exists(options.log + ".go") and time.monotonic() < until:
            time.sleep(0.02)
        return self.on_token(asked)

    def on_mute(self, _asked):
        time.sleep(120)

    def on_endless(self, _asked):
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.02)
        except OSError:
            pass

    def on_huge(self, _asked):
        return self.answer(200, json.dumps({"access_token": "a" * (1 << 20)}))

    def on_half(self, _asked):
        self.send_response(200)
        self.send_header("content-length", "400")
        self.end_headers()
        self.wfile.write(b'{"access_token":"cut-')
        self.close_connection = True

    def on_nonsense(self, _asked):
        return self.answer(200, "<html>sign in</html>")

    def on_empty(self, _asked):
        return self.answer(200, "{}")

    def on_moved(self, _asked):
        return self.answer(302, "", location="/token")

    def on_broken(self, _asked):
        return self.answer(503, "{}")


def main():
    global options
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--port-file", required=True)
    parser.add_argument("--access", default="access")
    parser.add_argument("--numbered", type=int, default=1)
    parser.add_argument("--grace", type=int, default=0)
    parser.add_argument("--lifetime", type=float, default=300.0)
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # a client that goes away, or trusts nobody
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True,
                                        do_handshake_on_connect=False)
    with open(options.port_file + ".new", "w", encoding="utf-8") as file:
        file.write(str(server.server_address[1]))
    os.rename(options.port_file + ".new", options.port_file)
    timer = threading.Timer(options.lifetime, lambda: os._exit(0))
    timer.daemon = True
    timer.start()
    server.serve_forever()


main()

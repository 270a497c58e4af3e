#!/usr/bin/env python3
"""Whole scripts a second in native cells, from asking to the answer, and how long the slowest twentieth takes.

    bench_script.py BIN_DIR USER WORK_DIR RUNS

Run as root by ./dev bench; everything runs as USER. Each row is RUNS scripts by as many clients as there are processors,
through a gateway's API, an MCP server, or `taskcell script`. Exits with 1 where an aim is missed.
"""

import http.client
import json
import os
import pwd
import socket
import statistics
import subprocess
import sys
import threading
import time

from bench_gateway import Gateway, STARTED, become

CLIENTS = max(2, os.cpu_count() or 2)
SCRIPTS = {"bash": "true", "python": "pass"}
AIMS = {"bash": 100, "python": 60}
BECOMING = threading.Lock()


def connect(options, path):
    """Who this process is when it connects is what the other end is told; that is one for all threads."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    with BECOMING:
        os.seteuid(options.user.pw_uid)
        try:
            connection.connect(path)
        finally:
            os.seteuid(0)
    return connection


def through_gateway(options, home):
    def make():
        def run(language):
            connection = http.client.HTTPConnection("gateway", timeout=60)
            connection.sock = connect(options, f"{home}/taskcell.sock")
            connection.request("POST", "/v1/scripts", json.dumps({"language": language, "code": SCRIPTS[language]}))
            answer = json.loads(connection.getresponse().read())
            connection.close()
            if answer["code"] != "ok" or answer["exit_code"] != 0 or not answer["cell"]["verified"]:
                sys.exit(f"bench_script.py: {answer}")
        return run
    return make


def through_mcp(options, home):
    def make():
        server = subprocess.Popen([f"{options.bin_dir}/taskcell", "mcp", "--home", home], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/bin:/bin"},
                                  preexec_fn=lambda: become(options.user))
        STARTED.append(server)

        def run(language):
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": "execute_program",
                                  "arguments": {"language": language, "code": SCRIPTS[language]}}}
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            if answer["result"]["isError"]:
                sys.exit(f"bench_script.py: {answer}")
        return run
    return make


def by_command(options, home):
    def make():
        def run(language):
            done = subprocess.run([f"{options.bin_dir}/taskcell", "script", "--language", language, "--home", home],
                                  input=SCRIPTS[language], text=True, capture_output=True,
                                  env={"PATH": "/usr/bin:/bin"}, preexec_fn=lambda: become(options.user), check=False)
            if done.returncode != 0:
                sys.exit(f"bench_script.py: {done.stderr}")
        return run
    return make


def measure(name, make, language, runs, aim=None):
    walls = []
    lock = threading.Lock()

    def client(run):
        for _ in range(runs // CLIENTS):
            begun = time.monotonic()
            run(language)
            with lock:
                walls.append((time.monotonic() - begun) * 1000)

    clients = [make() for _ in range(CLIENTS)]
    for run in clients:
        run(language)  # everything is read once, and the launcher has looked around
    threads = [threading.Thread(target=client, args=(run,)) for run in clients]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rate = len(walls) / (time.monotonic() - begun)
    verdict = "" if aim is None else f"   aim {aim}: {'met' if rate >= aim else 'MISSED'}"
    walls.sort()
    print(f"{name + ', ' + language:<28} {rate:7.1f} runs/s   median {statistics.median(walls):6.1f} ms   "
          f"p95 {walls[int(len(walls) * 0.95)]:6.1f} ms{verdict}", flush=True)
    return aim is None or rate >= aim


class Options:
    def __init__(self, arguments):
        if len(arguments) != 4:
            sys.exit(__doc__)
        self.bin_dir, name, self.work, runs = arguments
        self.user = pwd.getpwnam(name)
        self.runs = int(runs)


def main():
    options = Options(sys.argv[1:])
    try:
        gateway = Gateway(options.bin_dir, options.user, f"{options.work}/script", "http://127.0.0.1:9",
                          f'engine = "native"\nmax_concurrent = {CLIENTS}')
        print(f"{CLIENTS} clients on {os.cpu_count()} processors, {options.runs} runs a row")
        met = True
        for language in SCRIPTS:
            met &= measure("a gateway's API", through_gateway(options, gateway.home), language, options.runs, AIMS[language])
        for language in SCRIPTS:
            measure("an MCP server", through_mcp(options, gateway.home), language, options.runs)
        for language in SCRIPTS:
            measure("taskcell script", by_command(options, gateway.home), language, options.runs)
    finally:
        for process in STARTED:
            process.kill()
            process.wait()
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Whole scripts a second in native cells, from asking to the answer, and how long the slowest twentieth takes.

    bench_script.py BIN_DIR USER WORK_DIR RUNS

Run as root by ./dev bench; everything runs as USER. Each row is RUNS scripts by as many clients as there are processors,
through a gateway's API, an MCP server, or `taskcell script`. Exits with 1 where an aim is missed.
"""

import json
import os
import statistics
import subprocess
import sys
import threading
import time

from bench_world import Gateway, STARTED, become, run

CLIENTS = max(2, os.cpu_count() or 2)
SCRIPTS = {"bash": "true", "python": "pass"}
AIMS = {"bash": 100, "python": 60}


def through_gateway(gateway):
    def make():
        def ask(language):
            answer = gateway.api.call("POST", "/v1/scripts", {"language": language, "code": SCRIPTS[language]})
            if answer["code"] != "ok" or answer["exit_code"] != 0 or not answer["cell"]["verified"]:
                sys.exit(f"bench_script.py: {answer}")
        return ask
    return make


def through_mcp(options, home):
    def make():
        server = subprocess.Popen([f"{options.bin_dir}/taskcell", "mcp", "--home", home], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, text=True, env={"PATH": "/usr/bin:/bin"},
                                  preexec_fn=lambda: become(options.user))
        STARTED.append(server)

        def ask(language):
            message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": "execute_program",
                                  "arguments": {"language": language, "code": SCRIPTS[language]}}}
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            if answer["result"]["isError"]:
                sys.exit(f"bench_script.py: {answer}")
        return ask
    return make


def by_command(options, home):
    def make():
        def ask(language):
            done = subprocess.run([f"{options.bin_dir}/taskcell", "script", "--language", language, "--home", home],
                                  input=SCRIPTS[language], text=True, capture_output=True,
                                  env={"PATH": "/usr/bin:/bin"}, preexec_fn=lambda: become(options.user), check=False)
            if done.returncode != 0:
                sys.exit(f"bench_script.py: {done.stderr}")
        return ask
    return make


def measure_row(name, make, language, runs, aim=None):
    walls = []
    lock = threading.Lock()

    def client(ask):
        for _ in range(runs // CLIENTS):
            begun = time.monotonic()
            ask(language)
            with lock:
                walls.append((time.monotonic() - begun) * 1000)

    clients = [make() for _ in range(CLIENTS)]
    for ask in clients:
        ask(language)  # everything is read once, and the launcher has looked around
    threads = [threading.Thread(target=client, args=(ask,)) for ask in clients]
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


def measure(options):
    runs = int(options.more[0])
    gateway = Gateway(options.bin_dir, options.user, f"{options.work}/script", "http://127.0.0.1:9",
                      f'engine = "native"\nmax_concurrent = {CLIENTS}')
    print(f"{CLIENTS} clients on {os.cpu_count()} processors, {runs} runs a row")
    met = True
    for language in SCRIPTS:
        met &= measure_row("a gateway's API", through_gateway(gateway), language, runs, AIMS[language])
    for language in SCRIPTS:
        measure_row("an MCP server", through_mcp(options, gateway.home), language, runs)
    for language in SCRIPTS:
        measure_row("taskcell script", by_command(options, gateway.home), language, runs)
    return met


if __name__ == "__main__":
    run(__doc__, (1,), measure)

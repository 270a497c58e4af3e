#!/usr/bin/env python3
"""What taskcell-gateway costs, and whether it loses or doubles a task under load.

    bench_gateway.py BIN_DIR USER WORK_DIR [DOCKER_SOCKET IMAGE]

Run as root by ./dev bench. Prints one line a figure with its aim, and exits with 1 where an aim is missed.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time

from bench_world import Gateway, Provider, run, wait_for

QUEUED = 1000
RUNNING = 50
IN_TURN = 20  # tasks on an engine, one after the other


class Figures:
    """What was measured, beside what it should be."""

    def __init__(self):
        self.missed = False

    def add(self, name, value, unit, aim=None):
        verdict = ""
        if aim is not None:
            self.missed = self.missed or value > aim
            verdict = f"   aim {aim:g} {unit}: {'met' if value <= aim else 'MISSED'}"
        print(f"{name:<66} {value:8.2f} {unit}{verdict}", flush=True)


def measure_memory(options, figures):
    """Idle; then with cells in which an AI waits for its provider."""
    provider = Provider(options.work)
    gateway = Gateway(options.bin_dir, options.user, f"{options.work}/memory",
                      f"{provider.url}/mode/hang/v1",
                      f'engine = "native"\nmax_concurrent = {RUNNING}')
    time.sleep(2)
    idle, resident = gateway.memory()
    figures.add("gateway idle, anonymous", idle / 1024, "MiB", 6)
    figures.add("gateway idle, resident", resident / 1024, "MiB", 20)
    for number in range(RUNNING):
        gateway.submit(f"waits {number}.")
    wait_for(lambda: len(provider.bodies()) == RUNNING, 60, f"not all of {RUNNING} cells stand")
    busy, _ = gateway.memory()
    figures.add(f"each of {RUNNING} tasks that run, anonymous", (busy - idle) / RUNNING, "KiB", 256)
    gateway.end()
    provider.end()
    os.unlink(provider.log)
    os.unlink(f"{options.work}/provider.port")


def measure_load(options, figures):
    provider = Provider(options.work)
    gateway = Gateway(options.bin_dir, options.user, f"{options.work}/load", f"{provider.url}/v1",
                      'engine = "native"\nmax_concurrent = 1')
    begun = time.monotonic()
    ids = [gateway.submit(f"question {number}.") for number in range(QUEUED)]
    taken = time.monotonic() - begun
    figures.add("waiting when all were handed over", gateway.status()["waiting"], "")
    begun = time.monotonic()
    gateway.configure(f'engine = "native"\nmax_concurrent = {RUNNING}', "")
    most = 0
    while True:
        status = gateway.status()
        most = max(most, status["running"])
        if status["running"] == status["waiting"] == 0:
            break
        if time.monotonic() - begun > 180:
            sys.exit("bench_gateway.py: the queue does not end within 180 s")
        time.sleep(0.2)
    took = time.monotonic() - begun
    cpu = gateway.cpu_ms()
    tasks = gateway.api.call("GET", "/v1/tasks?all=1")
    done = {task["id"] for task in tasks if task["state"] == "done"}
    asked = {}
    for body in provider.bodies():
        question = re.search(r"question \d+\.", body)[0]
        asked[question] = asked.get(question, 0) + 1
    figures.add(f"{QUEUED} tasks, handed over in", taken, "s")
    figures.add(f"{RUNNING} at once, the rest of them done in", took, "s")
    figures.add("most at once", most, "")
    figures.add("tasks lost", QUEUED - len(done & set(ids)), "", 0)
    figures.add("tasks run twice", sum(count - 1 for count in asked.values()), "", 0)
    figures.add("the gateway's own processor time a task", cpu / QUEUED, "ms", 5)
    gateway.end()
    provider.end()
    os.unlink(provider.log)
    os.unlink(f"{options.work}/provider.port")


def bare_container(options):
    """One container made, started, awaited and removed by curl, in ms."""
    def curl(method, target, body=None):
        argv = ["curl", "-sS", "--fail", "-m", "30", "--unix-socket", options.more[0], "-X", method,
                "-H", "Content-Type: application/json", f"http://engine{target}"]
        answer = subprocess.run(argv + (["-d", json.dumps(body)] if body else []), check=True,
                                capture_output=True).stdout
        return json.loads(answer) if answer.strip() else {}

    begun = time.monotonic()
    host = {"NetworkMode": "none", "Memory": 134217728, "MemorySwap": 134217728, "PidsLimit": 32}
    made = curl("POST", "/containers/create",
                {"Image": options.more[1], "Cmd": ["/bin/true"], "HostConfig": host})["Id"]
    curl("POST", f"/containers/{made}/start")
    curl("POST", f"/containers/{made}/wait")
    curl("DELETE", f"/containers/{made}?force=1")
    return (time.monotonic() - begun) * 1000


def measure_engine(options, figures):
    provider = Provider(options.work)
    gateway = Gateway(options.bin_dir, options.user, f"{options.work}/docker", f"{provider.url}/v1",
                      f'engine = "docker"\nengine_socket = "{options.more[0]}"\n'
                      "max_concurrent = 1",
                      f'image = "{options.more[1]}"')
    bare = [bare_container(options) for _ in range(IN_TURN)]
    cpu = gateway.cpu_ms()
    for number in range(IN_TURN):
        gateway.submit(f"question {number}.")
    # Asked rarely: what that takes is counted as well.
    wait_for(lambda: gateway.status()["waiting"] == 0, 120, "the tasks on the engine do not run", 2)
    wait_for(lambda: gateway.status()["running"] == 0, 60, "a task on the engine does not end", 1)
    cpu = gateway.cpu_ms() - cpu
    rows = gateway.api.call("GET", "/v1/tasks")
    if any(row["state"] != "done" for row in rows):
        sys.exit(f"bench_gateway.py: {rows}")
    walls = [row["ended_ms"] - row["started_ms"] for row in rows]
    figures.add("a task on Docker, from its claim to its end (median)",
                statistics.median(walls), "ms")
    figures.add("a container by bare API calls with curl (median)", statistics.median(bare), "ms")
    figures.add("the gateway's own processor time a task on Docker", cpu / IN_TURN, "ms", 5)
    gateway.end()
    provider.end()


def measure(options):
    figures = Figures()
    measure_memory(options, figures)
    measure_load(options, figures)
    if options.more:
        measure_engine(options, figures)
    else:
        print("no Docker engine: not compared with one")
    return not figures.missed


if __name__ == "__main__":
    run(__doc__, (0, 2), measure)

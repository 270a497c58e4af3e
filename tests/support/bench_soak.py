#!/usr/bin/env python3
"""Whether a gateway under steady load stays as it is: memory, descriptors, threads, cgroups, run directories.

    bench_soak.py BIN_DIR USER WORK_DIR MINUTES

Run as root by ./dev bench soak; everything runs as USER. Native tasks, whose provider is on loopback, and scripts are
run without a pause; once a minute the load stands still until nothing runs, and what is there then is one line. The
first minute is to get warm in. At the end a line is fitted to each column: exits with 1 where one grows more than its
bound over the whole time, or where something is left of what ended.
"""

import http.client
import os
import re
import sys
import threading
import time

from bench_world import Gateway, Provider, run

MINUTE = 60
WAITING = 8  # tasks that stand in the queue
SCRIPTS = ({"language": "bash", "code": "echo $((6 * 7))"}, {"language": "python", "code": "print(6 * 7)"})
# What each may grow by over the whole time, as the fitted line has it. Up to three connections to the provider are open or
# not when it is looked; a descriptor that one task in a thousand lost would make 18 in half an hour.
BOUNDS = {"anonymous KiB": 512, "descriptors": 3, "threads": 1, "cgroups": 0, "run directories": 0, "children": 0}


class Load:
    """Tasks and scripts one after the other, until told to stand still."""

    def __init__(self, gateway):
        self.ask = gateway.api.call
        self.moving = threading.Event()
        self.is_over = False
        self.failure = None
        self.scripts = 0
        self.tasks = 0
        self.busy = 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.keep, args=(self.run_script,)),
                        threading.Thread(target=self.keep, args=(self.submit_task,))]
        for thread in self.threads:
            thread.start()

    def run_script(self):
        answer = self.ask("POST", "/v1/scripts", SCRIPTS[self.scripts % len(SCRIPTS)])
        if answer["code"] != "ok" or answer["stdout"].strip() != "42":
            raise RuntimeError(f"a script: {answer}")
        self.scripts += 1

    def submit_task(self):
        if self.ask("GET", "/v1/status")["waiting"] >= WAITING:
            time.sleep(0.05)
            return
        self.ask("POST", "/v1/tasks", {"agent": "bench", "kind": "bus", "prompt": f"question {self.tasks}."})
        self.tasks += 1

    def keep(self, work):
        while True:
            self.moving.wait()
            if self.is_over:
                return
            with self.lock:
                self.busy += 1
            try:
                work()
            except (OSError, RuntimeError, http.client.HTTPException) as error:
                self.failure = self.failure or str(error)
                return
            finally:
                with self.lock:
                    self.busy -= 1

    def is_still(self):
        if self.busy > 0:
            return False
        status = self.ask("GET", "/v1/status")
        return status["running"] == status["waiting"] == 0

    def rest(self):
        self.moving.clear()
        end = time.monotonic() + MINUTE
        while not self.is_still():
            if time.monotonic() > end:
                sys.exit("bench_soak.py: what runs does not end within a minute")
            time.sleep(0.1)
        time.sleep(1)  # a thread that ended is taken in by the next look

    def end(self):
        self.is_over = True
        self.moving.set()
        for thread in self.threads:
            thread.join()


def cgroups_of_runs():
    """Each hierarchy has its own."""
    return sum(name.startswith("run-") for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)


def look(gateway):
    process = f"/proc/{gateway.process.pid}"
    with open(f"{process}/status", encoding="ascii") as status:
        threads = int(re.search(r"^Threads:\s+(\d+)$", status.read(), re.M)[1])
    with open(f"{process}/task/{gateway.process.pid}/children", encoding="ascii") as children:
        count = len(children.read().split())
    runs = f"{gateway.home}/sandbox/runs"
    return {"anonymous KiB": gateway.memory()[0], "descriptors": len(os.listdir(f"{process}/fd")), "threads": threads,
            "cgroups": cgroups_of_runs(), "run directories": len(os.listdir(runs)) if os.path.isdir(runs) else 0,
            "children": count}


def growth(values):
    """Of the least-squares line through values taken at equal distances, from the first to the last."""
    count = len(values)
    middle = (count - 1) / 2
    mean = sum(values) / count
    below = sum((at - middle) ** 2 for at in range(count))
    slope = sum((at - middle) * (value - mean) for at, value in enumerate(values)) / below
    return slope * (count - 1)


def judge(rows, rest):
    """True where every column is flat. What is there without any load is what was there before it."""
    flat = True
    for name, bound in BOUNDS.items():
        grown = growth([row[name] for row in rows])
        left = name in ("cgroups", "run directories") and rows[-1][name] > rest[name]
        verdict = "NOT FLAT" if grown > bound or left else "flat"
        flat = flat and verdict == "flat"
        print(f"{name:<16} {grown:+9.1f} over the whole time, bound {bound}: {verdict}")
    return flat


def soak(options):
    minutes = int(options.more[0])
    if minutes < 3:
        sys.exit("bench_soak.py: at least 3 minutes")
    provider = Provider(options.work, lifetime=(minutes + 10) * MINUTE)
    gateway = Gateway(options.bin_dir, options.user, f"{options.work}/soak", f"{provider.url}/v1",
                      'engine = "native"\nmax_concurrent = 4')
    time.sleep(1)
    rest = look(gateway)
    print("minute    tasks  scripts  " + "  ".join(rest))
    load = Load(gateway)
    rows = []
    try:
        for minute in range(minutes + 1):
            load.moving.set()
            end = time.monotonic() + MINUTE
            while time.monotonic() < end and load.failure is None and gateway.process.poll() is None:
                time.sleep(0.2)
            if load.failure is None and gateway.process.poll() is None:
                load.rest()
            if load.failure is not None or gateway.process.poll() is not None:
                sys.exit(f"bench_soak.py: {load.failure or 'the gateway ended'}")
            row = look(gateway)
            print(f"{minute or 'warm':>6} {load.tasks:>8} {load.scripts:>8}  "
                  + "  ".join(f"{value:>{len(name)}}" for name, value in row.items()), flush=True)
            if minute > 0:
                rows.append(row)
    finally:
        load.end()
    tasks = load.ask("GET", "/v1/tasks?all=1")
    failed = [task for task in tasks if task["state"] != "done"]
    if len(tasks) != load.tasks or failed:
        sys.exit(f"bench_soak.py: of {load.tasks} tasks {len(tasks)} are known, {len(failed)} not done: {failed[:3]}")
    gateway.end()
    return judge(rows, rest)


if __name__ == "__main__":
    run(__doc__, (1,), soak)

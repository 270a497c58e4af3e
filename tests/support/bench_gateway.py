#!/usr/bin/env python3
"""What taskcell-gateway costs, and whether it loses or doubles a task under load.

    bench_gateway.py BIN_DIR USER WORK_DIR [DOCKER_SOCKET IMAGE]

Run as root by ./dev bench; the gateways and their clients run as USER. WORK_DIR is empty, and USER
may enter it. Prints one line a figure with its aim, and exits with 1 where an aim is missed.
"""

import http.client
import json
import os
import pwd
import re
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
QUEUED = 1000
RUNNING = 50
IN_TURN = 20  # tasks on an engine, one after the other
KEY = "sk-bench-" + secrets.token_hex(12)
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")

AGENT = """[agent]
name = "bench"
[runtime]
provider = "openai_compat"
[model]
preferred = "openai/bench-model"
[container]
sandbox_enabled = true
network_access = true
timeout_ms = 120000
"""


class Api:
    """The gateway's API, asked as the user it belongs to."""

    def __init__(self, path, user):
        self.path = path
        self.user = user

    def call(self, method, target, body=None):
        connection = http.client.HTTPConnection("gateway", timeout=60)
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        os.seteuid(self.user.pw_uid)  # what the other end is told of this one
        try:
            connection.sock.connect(self.path)
        finally:
            os.seteuid(0)
        connection.request(method, target, body=None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{target}: {answer.status} {text.decode()}")
        return json.loads(text)


STARTED = []  # all that is to be ended, whatever happens


class Gateway:
    """A gateway with a home of its own."""

    def __init__(self, bin_dir, user, home, provider_url, own_keys, sandbox_keys=""):
        os.makedirs(f"{home}/agents/bench", mode=0o700)
        self.home = home
        self.user = user
        self.configure(own_keys, sandbox_keys)
        with open(f"{home}/agents/bench/agent.toml", "w", encoding="utf-8") as agent:
            agent.write(AGENT)
        subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", home], check=True)
        os.chmod(home, 0o700)
        environment = {"PATH": "/usr/bin:/bin", "HOME": user.pw_dir, "OPENAI_API_KEY": KEY,
                       "OPENAI_BASE_URL": provider_url}
        self.process = subprocess.Popen(
            [f"{bin_dir}/taskcell-gateway", "--home", home, "--drain-seconds", "0"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: become(user))
        STARTED.append(self.process)
        self.api = Api(f"{home}/taskcell.sock", user)
        wait_for(lambda: self.status() is not None, 20, "the gateway does not serve")

    def configure(self, own_keys, sandbox_keys):
        """What it reads afresh each time it looks for something to do."""
        with open(f"{self.home}/config.new", "w", encoding="utf-8") as config:
            config.write(f"[taskcell]\n{own_keys}\n[container.sandbox]\n{sandbox_keys}\n"
                         "memory_bytes = 134217728\ntmp_bytes = 16777216\n"
                         "workspace_bytes = 16777216\npids = 32\n")
        os.chown(f"{self.home}/config.new", self.user.pw_uid, self.user.pw_gid)
        os.rename(f"{self.home}/config.new", f"{self.home}/config.toml")

    def status(self):
        try:
            return self.api.call("GET", "/v1/status")
        except OSError:
            return None

    def submit(self, prompt):
        task = {"agent": "bench", "kind": "bus", "prompt": prompt}
        return self.api.call("POST", "/v1/tasks", task)["id"]

    def memory(self):
        """(anonymous, resident) in KiB."""
        with open(f"/proc/{self.process.pid}/smaps_rollup", encoding="ascii") as rollup:
            text = rollup.read()
        return tuple(int(re.search(rf"^{name}: +(\d+) kB$", text, re.M)[1])
                     for name in ("Anonymous", "Rss"))

    def cpu_ms(self):
        """Of the gateway alone, not of what it starts."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / CLOCK_TICKS

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


class Provider:
    """tests/support/provider.py, which answers at once."""

    def __init__(self, work, lifetime=600):
        self.log = f"{work}/provider.jsonl"
        port_file = f"{work}/provider.port"
        self.process = subprocess.Popen(
            [sys.executable, f"{HERE}/provider.py", "--key", KEY, "--scenario", "hello", "--log",
             self.log, "--port-file", port_file, "--lifetime", str(lifetime)], stdout=subprocess.DEVNULL)
        STARTED.append(self.process)
        wait_for(lambda: os.path.exists(port_file), 20, "the provider does not serve")
        with open(port_file, encoding="ascii") as port:
            self.url = f"http://127.0.0.1:{int(port.read())}"

    def bodies(self):
        with open(self.log, encoding="utf-8") as log:
            return [json.loads(line)["body"] for line in log]

    def end(self):
        self.process.kill()
        self.process.wait()


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


def become(user):
    """Into the place delegated on cgroup v2, as the tests' programs go."""
    place = f"/sys/fs/cgroup/taskcell/uid-{user.pw_uid}/supervisor/cgroup.procs"
    if os.path.exists(place):
        with open(place, "w", encoding="ascii") as procs:
            procs.write("0")
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


def wait_for(holds, seconds, complaint, pause=0.05):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"bench_gateway.py: {complaint} within {seconds} s")
        time.sleep(pause)


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
        argv = ["curl", "-sS", "--fail", "-m", "30", "--unix-socket", options.socket, "-X", method,
                "-H", "Content-Type: application/json", f"http://engine{target}"]
        answer = subprocess.run(argv + (["-d", json.dumps(body)] if body else []), check=True,
                                capture_output=True).stdout
        return json.loads(answer) if answer.strip() else {}

    begun = time.monotonic()
    host = {"NetworkMode": "none", "Memory": 134217728, "MemorySwap": 134217728, "PidsLimit": 32}
    made = curl("POST", "/containers/create",
                {"Image": options.image, "Cmd": ["/bin/true"], "HostConfig": host})["Id"]
    curl("POST", f"/containers/{made}/start")
    curl("POST", f"/containers/{made}/wait")
    curl("DELETE", f"/containers/{made}?force=1")
    return (time.monotonic() - begun) * 1000


def measure_engine(options, figures):
    provider = Provider(options.work)
    gateway = Gateway(options.bin_dir, options.user, f"{options.work}/docker", f"{provider.url}/v1",
                      f'engine = "docker"\nengine_socket = "{options.socket}"\n'
                      "max_concurrent = 1",
                      f'image = "{options.image}"')
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


class Options:
    def __init__(self, arguments):
        if len(arguments) not in (3, 5):
            sys.exit(__doc__)
        self.bin_dir, name, self.work = arguments[:3]
        self.user = pwd.getpwnam(name)
        self.socket, self.image = arguments[3:] if len(arguments) == 5 else (None, None)


def main():
    options = Options(sys.argv[1:])
    figures = Figures()
    try:
        measure_memory(options, figures)
        measure_load(options, figures)
        if options.socket:
            measure_engine(options, figures)
        else:
            print("no Docker engine: not compared with one")
    finally:
        for process in STARTED:
            process.kill()
            process.wait()
    sys.exit(1 if figures.missed else 0)


if __name__ == "__main__":
    main()

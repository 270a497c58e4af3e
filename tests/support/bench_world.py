"""What the parts of the bench that load a gateway have in common: a gateway, a provider, a user to ask as.

Run as root; the gateways and their clients run as the user.
"""

import http.client
import json
import os
import pwd
import re
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
KEY = "sk-bench-" + secrets.token_hex(12)
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
STARTED = []  # all that is to be ended, whatever happens
BECOMING = threading.Lock()

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


def connect(user, path):
    """Who this process is when it connects is what the other end is told; that is one for all threads."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    with BECOMING:
        os.seteuid(user.pw_uid)
        try:
            connection.connect(path)
        finally:
            os.seteuid(0)
    return connection


class Api:
    """The gateway's API, asked as the user it belongs to, from any thread."""

    def __init__(self, path, user):
        self.path = path
        self.user = user

    def call(self, method, target, body=None):
        connection = http.client.HTTPConnection("gateway", timeout=60)
        connection.sock = connect(self.user, self.path)
        connection.request(method, target, body=None if body is None else json.dumps(body))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"{target}: {answer.status} {text.decode()}")
        return json.loads(text)


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
            sys.exit(f"{os.path.basename(sys.argv[0])}: {complaint} within {seconds} s")
        time.sleep(pause)


class Options:
    """Of the command line: BIN_DIR USER WORK_DIR, and what a part has more. WORK_DIR is empty, and USER may enter it."""

    def __init__(self, arguments):
        self.bin_dir, name, self.work, *self.more = arguments
        self.user = pwd.getpwnam(name)


def run(usage, counts, measure):
    """Measures with the options of the command line, which may have as many more as `counts` says; whatever happens, ends
    what was started. Exits with 1 where `measure` does not answer that the aims are met."""
    if len(sys.argv) - 4 not in counts:
        sys.exit(usage)
    try:
        met = measure(Options(sys.argv[1:]))
    finally:
        for process in STARTED:
            process.kill()
            process.wait()
    sys.exit(0 if met else 1)

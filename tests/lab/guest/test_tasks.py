"""A whole task with tools in a verified cell of each container engine, and refused where a rootless one has no limits."""

import json
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time

import places
import test_engines

TASKCELL = places.PROGRAMS + "/taskcell"
KEY = "sk-lab-0123456789abcdef"
PROVIDER_S = 120
IMAGE = test_engines.IMAGE + ":latest"
AGENT = """[agent]
name = "scout"
[runtime]
provider = "openai_compat"
[model]
preferred = "openai/lab-model"
[container]
sandbox_enabled = true
network_access = true
timeout_ms = 300000
"""


class Tasks(test_engines.Engines):
    """The engines are started as their own test does; alice is given the rootful one's socket."""

    def make_home(self, socket_path):
        # Below a directory that nobody but alice may write.
        home = pathlib.Path(tempfile.mkdtemp(prefix="lab-", dir=pwd.getpwnam("alice").pw_dir))
        self.addCleanup(shutil.rmtree, home)
        (home / "agents/scout/wiki").mkdir(parents=True)
        (home / "agents/scout/agent.toml").write_text(AGENT)
        self.value = os.urandom(8).hex()
        (home / "agents/scout/wiki/value.txt").write_text(self.value)
        (home / "config.toml").write_text(
            f'[taskcell]\nengine_socket = "{socket_path}"\n[container.sandbox]\nimage = "{IMAGE}"\n'
            "memory_bytes = 134217728\ntmp_bytes = 16777216\nworkspace_bytes = 16777216\npids = 40\ncpu_millis = 700\n"
            f'[[accounts]]\nid = "lab"\nprovider = "openai"\napi_key = "{KEY}"\n')
        (home / "config.toml").chmod(0o600)
        subprocess.run(["chown", "-R", "alice:alice", str(home)], check=True)
        home.chmod(0o700)
        return home

    def start_provider(self):
        scenario = pathlib.Path(self.scratch, "scenario.json")
        scenario.write_text(json.dumps({
            "steps": [{"do": "write", "path": "/workspace/note.txt", "content": "noted"},
                      {"do": "read", "path": "/workspace/note.txt"}, {"do": "read", "path": "/agent/wiki/value.txt"}],
            "reply": "{1} and {last}"}))
        port_file = pathlib.Path(self.scratch, "port")
        provider = subprocess.Popen(
            ["python3", places.LAB + "/tests/support/provider.py", "--key", KEY, "--scenario", str(scenario),
             "--port-file", str(port_file), "--lifetime", "900"], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        self.addCleanup(provider.wait)
        self.addCleanup(provider.kill)
        end = time.monotonic() + PROVIDER_S
        while not port_file.exists() or not port_file.read_text().strip():
            self.assertLess(time.monotonic(), end, "the provider did not start")
            time.sleep(0.1)
        return port_file.read_text().strip()

    def run_task(self, socket_path):
        """The answer of one task of alice's, and the engine."""
        engine = test_engines.Engine(socket_path)
        engine.wait_until_it_answers()
        engine.import_busybox()
        if os.stat(socket_path).st_uid == 0:
            os.chown(socket_path, pwd.getpwnam("alice").pw_uid, -1)
        home = self.make_home(socket_path)
        port = self.start_provider()
        ran = self.run_in(places.manager("alice"), "env", f"OPENAI_BASE_URL=http://127.0.0.1:{port}/v1", TASKCELL, "run",
                          "scout", "Read the value.", "--home", str(home), "--json")
        self.assertTrue(ran.stdout.startswith("{"), f"status {ran.returncode} {ran.stdout} {ran.stderr}")
        self.assertEqual(json.loads(engine.ask("GET", "/containers/json?all=1")), [], "a container was left")
        runs = home / "sandbox/runs"
        self.assertEqual(list(runs.iterdir()) if runs.exists() else [], [], "a run directory was left")
        return json.loads(ran.stdout)

    def assert_engine(self, place, socket_path):
        """A task with tools comes back with what only a tool in the cell could read, from a verified cell."""
        answer = self.run_task(socket_path)
        self.assertEqual(answer["code"], "ok", answer)
        self.assertEqual(answer["reply"], f"noted and {self.value}")
        receipt = answer["receipt"]
        self.assertTrue(receipt["verified"], receipt)
        for limit in receipt["limits"]:
            self.assertEqual(limit["asked"], limit["seen_outside"], limit)
        print(f"lab: a task on {receipt['engine']}: uid separation {receipt['uid_separation']}")


class TaskRefusals(Tasks):
    """A rootless engine to which no limits were delegated gets no task."""

    test_rootful_docker = None
    test_rootless_docker = None
    test_rootless_podman = None

    def test_rootless_podman_without_limits(self):
        alice = places.dropped("alice")
        places.wait_for_manager("alice")
        directory = f"/run/user/{pwd.getpwnam('alice').pw_uid}"
        socket_path = self.scratch + "/podman.sock"
        podman = subprocess.Popen(
            [*alice, "env", "XDG_RUNTIME_DIR=" + directory, "podman", "--cgroup-manager=cgroupfs", "system", "service",
             "--time=0", "unix://" + socket_path], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        self.addCleanup(podman.wait)
        self.addCleanup(podman.terminate)
        answer = self.run_task(socket_path)
        self.assertEqual(answer["code"], "resource_limits_unenforced", answer)
        self.assertIsNone(answer["reply"])
        print("lab: refused: " + answer["message"])

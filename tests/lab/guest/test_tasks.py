"""A whole task with tools in a verified cell of each container engine, and refused where a rootless one has no limits."""

import http.server
import json
import os
import pathlib
import pty
import pwd
import select
import shutil
import signal
import socketserver
import subprocess
import tempfile
import threading
import time

import places
import test_engines
from case import PROBE_TRIES, was_too_busy

TASKCELL = places.PROGRAMS + "/taskcell"
KEY = "sk-lab-0123456789abcdef"
PROVIDER_S = 120
SHELL_S = 300
IMAGE = test_engines.IMAGE + ":latest"
# Where engines keep what containers write, and where logs are; a home of alice's and her engines' storage are below /home.
KEPT = ("/home", "/var/lib/docker", "/var/lib/containerd", "/run/docker", "/run/containerd", "/run/user", "/run/log", "/var/log")
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


def start_provider(case, scenario, *options):
    """A provider on loopback that plays the scenario until the test is over; its port."""
    file = pathlib.Path(case.scratch, "scenario.json")
    file.write_text(json.dumps(scenario))
    port_file = pathlib.Path(case.scratch, "port")
    port_file.unlink(missing_ok=True)
    provider = subprocess.Popen(
        ["python3", places.LAB + "/tests/support/provider.py", "--key", KEY, "--scenario", str(file),
         "--port-file", str(port_file), "--lifetime", "900", *options], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    case.addCleanup(provider.wait)
    case.addCleanup(provider.kill)
    end = time.monotonic() + PROVIDER_S
    while not port_file.exists() or not port_file.read_text().strip():
        case.assertLess(time.monotonic(), end, "the provider did not start")
        time.sleep(0.1)
    return port_file.read_text().strip()


class Tasks(test_engines.Engines):
    """The engines are started as their own test does; alice is given the rootful one's socket."""

    url = "http://127.0.0.1:9/v1"  # for whom nobody asks a provider

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
        self.give_to_alice(home)
        return home

    def give_to_alice(self, home):
        subprocess.run(["chown", "-hR", "alice:alice", str(home)], check=True)
        home.chmod(0o700)

    def prepare(self, socket_path):
        """The engine, with the image, for alice; and her home."""
        engine = test_engines.Engine(socket_path)
        engine.wait_until_it_answers()
        engine.import_small_root()
        if os.stat(socket_path).st_uid == 0:
            os.chown(socket_path, pwd.getpwnam("alice").pw_uid, -1)
        return engine, self.make_home(socket_path)

    def client(self, url, *words):
        """alice's client with the provider at `url`."""
        return [*places.manager("alice"), "env", "OPENAI_BASE_URL=" + url, TASKCELL, *words]

    def answer(self, url, home, *words, **options):
        """What it prints as JSON; asked again while the machine is too busy for its engine to answer in time."""
        for _ in range(PROBE_TRIES):
            ran = self.run_in(self.client(url, *words), "--home", str(home), "--json", **options)
            self.assertTrue(ran.stdout.startswith("{"), f"status {ran.returncode} {ran.stdout} {ran.stderr}")
            if not was_too_busy(ran.stdout):
                break
        return json.loads(ran.stdout)

    def assert_tidy(self, engine, home):
        left = [one for one in json.loads(engine.ask("GET", "/containers/json?all=1")) if self.is_there(engine, one["Id"])]
        self.assertEqual(left, [], "a container was left")
        runs = home / "sandbox/runs"
        self.assertEqual(list(runs.iterdir()) if runs.exists() else [], [], "a run directory was left")

    @staticmethod
    def is_there(engine, container):
        """Docker's list may go on with one that is gone, as `removing`; asked for that very one, it says so."""
        try:
            engine.ask("GET", f"/containers/{container}/json")
        except AssertionError as error:
            if ": 404 " in str(error):
                return False
            raise
        return True

    def run_task(self, socket_path):
        """The answer of one task of alice's. `run_script_too` is then for the same engine and home."""
        engine, home = self.prepare(socket_path)
        self.canary = "canary-" + os.urandom(16).hex()
        port = start_provider(self, {
            "steps": [{"do": "write", "path": "/workspace/canary", "content": self.canary},
                      {"do": "write", "path": "/tmp/canary", "content": self.canary},
                      {"do": "read", "path": "/workspace/canary"}, {"do": "read", "path": "/tmp/canary"},
                      {"do": "read", "path": "/agent/wiki/value.txt"}, {"do": "read", "path": "/etc/passwd"}],
            "reply": "{2} {3} {4} {last}"})
        url = f"http://127.0.0.1:{port}/v1"
        answer = self.answer(url, home, "run", "scout", "Read the value.")
        self.assert_tidy(engine, home)
        self.assert_nowhere(home)

        def run_script():
            answer = self.run_script(url, home)
            self.assert_tidy(engine, home)
            return answer
        self.run_script_too = run_script
        return answer

    def run_script(self, url, home):
        """The answer of a script of alice's, which prints what it was given, and the interfaces it sees."""
        text = pathlib.Path(self.scratch, "script")
        text.write_text('cat; while read -r line; do [[ $line != *:* ]] || echo "$((UID > 0)) ${line%%:*}"; done </proc/net/dev\n'
                        "echo err >&2; exit 3\n")
        given = pathlib.Path(self.scratch, "given")
        given.write_text("given\n")
        return self.answer(url, home, "script", "--language", "bash", "--stdin", str(given), str(text))

    def assert_nowhere(self, home):
        """What the task wrote is in no file of the home, of an engine's or of a log."""
        def search():
            argv = ["grep", "-rlaFD", "skip", "--", self.canary, *(top for top in KEPT if os.path.exists(top))]
            return self.run_in([], *argv).stdout.split()
        self.assertEqual(search(), [])
        (home / "control").write_text(self.canary)
        self.assertEqual(search(), [str(home / "control")])

    def assert_engine(self, place, socket_path):
        """A task with tools comes back with what only a tool in the cell could read, from a verified cell."""
        answer = self.run_task(socket_path)
        self.assertEqual(answer["code"], "ok", answer)
        self.assertTrue(answer["reply"].startswith(f"{self.canary} {self.canary} {self.value} root:x:0:0:"), answer["reply"])
        self.assertIn(f"\nagent:x:{answer['receipt']['cell']['uid']}:", answer["reply"])
        receipt = answer["receipt"]
        self.assertTrue(receipt["verified"], receipt)
        for limit in receipt["limits"]:
            self.assertEqual(limit["asked"], limit["seen_outside"], limit)
        script = self.run_script_too()
        self.assertEqual([script[key] for key in ("code", "stdout", "stderr", "exit_code", "ran_on_host")],
                         ["ok", "given\n1 lo\n", "err\n", 3, False], script)
        self.assertTrue(script["cell"]["verified"], script)
        print(f"lab: a task on {receipt['engine']}: uid separation {receipt['uid_separation']}")


class EngineTasks(Tasks):
    """Of each engine its limits in force, and on rootful Docker and rootless Podman a whole task."""

    def assert_engine(self, place, socket_path):
        test_engines.Engines.assert_engine(self, place, socket_path)
        if socket_path == "/run/docker.sock" or "podman" in socket_path:
            super().assert_engine(place, socket_path)


class OperatorCommands(Tasks):
    """What a person does by hand with the cells of each engine."""

    def test_rootless_podman(self):
        # It reads once which registries it may ask without TLS, so this one is there first.
        self.registry = self.start_registry([])
        registries = pathlib.Path("/etc/containers/registries.conf.d/lab.conf")
        self.addCleanup(registries.unlink)
        registries.write_text(f'[[registry]]\nlocation = "{self.registry}"\ninsecure = true\n')
        super().test_rootless_podman()

    def assert_engine(self, place, socket_path):
        engine, home = self.prepare(socket_path)
        self.assert_image_is_judged(home)
        if "podman" not in socket_path:
            self.registry = self.start_registry(self.loopback_of(place))
        self.assert_image_is_pulled(engine, home)
        self.assert_shell(home)
        self.assert_attacks_are_contained(home)
        self.assert_tidy(engine, home)

    def loopback_of(self, place):
        """Where a dockerd's own is: a rootless one has a network of its own."""
        if place == places.root():
            return []
        daemon = self.run_in([], "pgrep", "-n", "-x", "-u", "alice", "dockerd").stdout.strip()
        return ["nsenter", "--net", "--target", daemon]

    def start_registry(self, place):
        """Its address."""
        spec = {"files": {"/tag": {"text": "pulled"}}}
        server = subprocess.Popen([*place, "python3", places.LAB + "/tests/support/registry.py", self.scratch + "/requests",
                                   json.dumps(spec), "1800"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        return "127.0.0.1:" + server.stdout.readline().strip()

    def assert_image_is_judged(self, home):
        check = self.answer(self.url, home, "image", "check")
        self.assertEqual((check["image"], check["usable"]), (IMAGE, True), check)
        states = {program["runtime"]: program["state"] for program in check["programs"]}
        # Its programs are scripts that want a task's agent directory.
        self.assertEqual(states, {"antigravity": "fails", "claude": "fails", "codex": "fails", "grok": "fails",
                                  "openai-compat": "unused"}, check)

    def assert_image_is_pulled(self, engine, home):
        image = self.registry + "/taskcell/sample:good"
        ran = self.run_in(self.client(self.url, "image", "pull", image), "--home", str(home))
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn(image, json.loads(engine.ask("GET", f"/images/{image}/json"))["RepoTags"])
        engine.ask("DELETE", f"/images/{image}?force=1")

    def assert_shell(self, home):
        """At a terminal, with somebody who types once the cell is there."""
        words = [*self.client(self.url, "shell", "scout"), "--home", str(home)]
        child, terminal = pty.fork()
        if child == 0:
            os.execvp(words[0], words)
        self.addCleanup(os.close, terminal)
        try:
            self.assert_screen(terminal, "the cell is verified")
            os.write(terminal, b"echo $((6 * 7))-$(cat /agent/wiki/value.txt)-; exit 5\n")
            self.assert_screen(terminal, f"42-{self.value}-")
        except AssertionError:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        self.assertEqual(status, 5)

    def assert_screen(self, terminal, text):
        screen = b""
        while text.encode() not in screen:
            self.assertTrue(select.select([terminal], [], [], SHELL_S)[0], f"{text!r} does not come: {screen!r}")
            try:
                screen += os.read(terminal, 4096)
            except OSError:  # nobody has its other end any more
                self.fail(f"{text!r} did not come: {screen!r}")

    def assert_attacks_are_contained(self, home):
        report = self.answer(self.url, home, "doctor", "--hostile", "--attack", "namespaces")
        self.assertEqual((report["refusal"], report["differences"]), (None, []), report)
        verdicts = [row["verdict"] for row in report["attacks"]]
        self.assertIn("contained", verdicts)
        self.assertNotIn("escaped", verdicts, report)


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
        self.assert_refused_here(socket_path)

    def test_rootless_docker_without_limits(self):
        """Without systemd's driver a rootless dockerd sets no limits at all."""
        places.wait_for_manager("alice")
        entry = pwd.getpwnam("alice")
        directory = f"/run/user/{entry.pw_uid}"
        subprocess.run(
            ["systemd-run", "-q", "--unit=lab-docker", "-p", "User=alice", "-E", "XDG_RUNTIME_DIR=" + directory,
             "-E", "HOME=" + entry.pw_dir, *test_engines.ROOTLESS_DOCKER, "--exec-opt", "native.cgroupdriver=cgroupfs"], check=True)
        self.addCleanup(subprocess.run, ["systemctl", "stop", "lab-docker.service"])
        self.assert_refused_here(directory + "/docker.sock")

    def assert_refused_here(self, socket_path):
        answer = self.run_task(socket_path)
        self.assertEqual(answer["code"], "resource_limits_unenforced", answer)
        self.assertIsNone(answer["reply"])
        print("lab: refused: " + answer["message"])
        script = self.run_script_too()
        self.assertEqual((script["code"], script["stdout"], script["ran_on_host"]), ("create_failed", "", False), script)
        print("lab: refused: " + script["message"])


class LyingEngine(http.server.BaseHTTPRequestHandler):
    """Hands everything on to the engine behind it, but for what `lie` changes: (method, target, body) before, and the answer
    after."""

    protocol_version = "HTTP/1.1"
    engine, lie = "", None

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        behind = test_engines.Connection(self.engine)
        told = self.lie(self.command, self.path, body)
        status, kind, content = 204, "application/json", b""
        if told is not None:
            behind.request(self.command, self.path, told, {"Content-Type": self.headers.get("Content-Type", kind)})
            came = behind.getresponse()
            status, kind = came.status, came.getheader("Content-Type", kind)
            content = self.lie("ANSWER", self.path, came.read())
        behind.close()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = answer

    def address_string(self):
        return "gateway"

    def log_message(self, *_words):
        pass


class Proxy(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


def changed(body, change):
    told = json.loads(body)
    change(told)
    return json.dumps(told).encode()


class LimitsCheck(Tasks):
    """A rootless engine must show that limits hold, whatever it says of itself: one code, a text for each cause."""

    test_rootful_docker = None
    test_rootless_docker = None

    def assert_engine(self, place, socket_path):
        def drop(told):
            told["HostConfig"].update({"Memory": 0, "MemorySwap": 0})

        def claim(told):
            told["HostConfig"].update({"Memory": 134217728, "MemorySwap": 134217728})

        def reports_others(kind, target, body):
            return changed(body, drop) if kind == "ANSWER" and is_inspect(target, body) else body

        def ignores_them(kind, target, body):
            if kind == "POST" and "/containers/create" in target:
                return changed(body, drop)
            return changed(body, claim) if kind == "ANSWER" and is_inspect(target, body) else body

        def starts_nothing(kind, target, body):
            return None if kind == "POST" and target.endswith("/start") else body

        for lie, code, part in ((reports_others, "resource_limits_unenforced", "memory"),
                                (ignores_them, "resource_limits_unenforced", "does not enforce limits"),
                                (starts_nothing, "resource_limits_unenforced", "did not finish")):
            with self.subTest(lie=lie.__name__):
                answer = self.run_task(self.start_proxy(socket_path, lie))
                print(f"lab: {lie.__name__}: {answer['code']}: {answer['message']}")
                self.assertEqual(answer["code"], code, answer)
                self.assertIn(part, answer["message"])
                self.assertIsNone(answer["reply"])
        answer = self.run_task(self.start_proxy(socket_path, lambda _kind, _target, body: body))
        self.assertEqual(answer["code"], "ok", "control: the proxy alone changes nothing")

    def start_proxy(self, socket_path, lie):
        path = f"{self.scratch}/{lie.__name__.strip('<>')}.sock"
        handler = type("Handler", (LyingEngine,), {"engine": socket_path, "lie": staticmethod(lie)})
        server = Proxy(path, handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return path


def is_inspect(target, body):
    return target.endswith("/json") and "/containers/" in target and b'"HostConfig"' in body

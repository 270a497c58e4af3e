"""The Debian package as its user uses it: installed by dpkg, run by the user's service manager and by the system's, purged."""

import json
import os
import pathlib
import pwd
import shutil
import subprocess
import time

import places
import test_engines
import test_tasks
from case import Case

GATEWAY = "taskcell-gateway.service"
WAIT_S = 300
ZSH_COMPLETION = pathlib.Path("/usr/share/zsh/vendor-completions/_taskcell")  # the image has no zsh to ask
NATIVE = 'engine = "native"'
LIMITS = {"memory_bytes": 134217728, "tmp_bytes": 16777216, "workspace_bytes": 16777216, "pids": 40, "cpu_millis": 700}
PLACES_OF_PACKAGES = ("/etc", "/usr", "/var/lib")
OTHERS = ("/var/lib/dpkg", "/var/lib/taskcell-test", "/var/lib/systemd", "/var/lib/docker", "/var/lib/containerd",
          "/var/lib/containers", "/etc/.pwd.lock")


def installed_files():
    """All that packages could have left; without the copies that the tools for users keep of what they change."""
    found = set()
    for top in PLACES_OF_PACKAGES:
        for directory, names, files in os.walk(top):
            names[:] = [name for name in names if os.path.join(directory, name) not in OTHERS]
            found.update(os.path.join(directory, name) for name in names + files if not name.endswith("-"))
    return found - set(OTHERS)


class Service:
    """The gateway's unit of one manager, and the home it serves."""

    def __init__(self, case, user, place, systemctl, units, home):
        self.case, self.user, self.place, self.systemctl = case, user, place, [*place, "systemctl", *systemctl]
        self.drop_ins, self.home = pathlib.Path(units, GATEWAY + ".d"), home

    def ask(self, *words, **options):
        ran = self.case.run_in(self.systemctl, *words, **options)
        self.case.assertEqual(ran.returncode, 0, f"{words}: {ran.stderr}")
        return ran.stdout

    def property(self, name):
        return self.ask("show", "--value", "-p", name, GATEWAY).strip()

    def wait_for(self, name, *values):
        self.case.wait_until(lambda: self.property(name) in values, f"{name} is not {values}")

    def set(self, *lines):
        """What an operator sets by `systemctl edit`."""
        self.case.make_file(self.drop_ins / "lab.conf", "\n".join(("[Service]", *lines, "")), self.user)
        self.case.addCleanup(shutil.rmtree, self.drop_ins, True)
        self.ask("daemon-reload")

    def cells(self):
        """The cells below the service's own cgroup."""
        top = pathlib.Path("/sys/fs/cgroup" + self.property("ControlGroup"))
        return [path for path in top.rglob("run-*") if len(path.name) == len("run-") + 32]

    def client(self, *words):
        return [*self.place, "taskcell", *words, "--home", str(self.home)]

    def tell(self, *words):
        """What `taskcell WORDS --json` prints."""
        ran = self.case.run_in(self.client(*words, "--json"))
        self.case.assertTrue(ran.stdout.startswith(("{", "[")), f"{words}: status {ran.returncode} {ran.stdout} {ran.stderr}")
        return json.loads(ran.stdout)


class Package(Case):
    """Installed before each test; afterwards it is purged, and has left nothing."""

    def setUp(self):
        super().setUp()
        self.before = installed_files()
        self.addCleanup(self.purge)
        self.install()

    def install(self):
        [package] = pathlib.Path(places.LAB, "build/release/package").glob("taskcell_*.deb")
        self.dpkg("--install", str(package))

    def dpkg(self, *words):
        ran = self.run_in([], "dpkg", *words)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def purge(self):
        self.dpkg("--purge", "taskcell")
        self.assertEqual(sorted(installed_files() - self.before), [])
        self.assertNotIn("taskcell", [entry.pw_name for entry in pwd.getpwall()])
        for name in ("/etc/subuid", "/etc/subgid"):
            self.assertNotIn("taskcell:", pathlib.Path(name).read_text())
        self.assertEqual(self.run_in([], "pgrep", "-x", "taskcell-gatewa").stdout, "")
        self.assert_nothing_left()

    def wait_until(self, holds, complaint):
        end = time.monotonic() + WAIT_S
        while not holds():
            self.assertLess(time.monotonic(), end, complaint)
            time.sleep(0.2)

    def make_file(self, path, text, user):
        """With the directories that are missing, all of the user's own."""
        entry = pwd.getpwnam(user)
        made = [parent for parent in path.parents if not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
        for each in (*made, path):
            os.chown(each, entry.pw_uid, entry.pw_gid)

    def make_home(self, home, user, settings=NATIVE, image=""):
        home.mkdir(mode=0o700, exist_ok=True)
        os.chown(home, pwd.getpwnam(user).pw_uid, pwd.getpwnam(user).pw_gid)
        self.addCleanup(shutil.rmtree, home, True)
        self.value = os.urandom(8).hex()
        limits = "".join(f"{name} = {value}\n" for name, value in LIMITS.items())
        self.make_file(home / "config.toml",
                       f"[taskcell]\n{settings}\n[container.sandbox]\n{image}{limits}"
                       f'[[accounts]]\nid = "lab"\nprovider = "openai"\napi_key = "{test_tasks.KEY}"\n', user)
        self.make_file(home / "agents/scout/agent.toml", test_tasks.AGENT, user)
        self.make_file(home / "agents/scout/wiki/value.txt", self.value, user)

    def start_provider(self):
        """Its second step is answered once the gate was opened."""
        self.gate = pathlib.Path(self.scratch, "gate")
        steps = [{"do": "read", "path": "/agent/wiki/value.txt"},
                 {"do": "write", "path": "/workspace/note.txt", "content": "noted {0}", "hold": str(self.gate)},
                 {"do": "read", "path": "/workspace/note.txt"}]
        return test_tasks.start_provider(self, {"steps": steps, "reply": "{last}"})

    def open_gate(self):
        pathlib.Path(f"{self.gate}.go").touch()

    def close_gate(self):
        for end in ("go", "held"):
            pathlib.Path(f"{self.gate}.{end}").unlink(missing_ok=True)

    def user_service(self, settings=NATIVE, image=""):
        """alice's, not started, with a home in its usual place."""
        directory = pathlib.Path(pwd.getpwnam("alice").pw_dir)
        place = places.manager("alice")
        self.make_home(directory / ".taskcell", "alice", settings, image)
        service = Service(self, "alice", place, ["--user"], directory / ".config/systemd/user", directory / ".taskcell")
        service.variable = f"Environment=OPENAI_BASE_URL=http://127.0.0.1:{self.start_provider()}/v1"
        service.set(service.variable)
        self.addCleanup(self.run_in, service.systemctl, "disable", "--now", GATEWAY)
        return service

    def submit(self, service):
        """A task that runs, and is held in the middle; its id."""
        self.close_gate()
        task = service.tell("submit", "scout", "--path", "bus", "Note the value.")["task_id"]
        self.wait_until(pathlib.Path(f"{self.gate}.held").exists, "the task did not come as far as it should")
        return task

    def assert_task_runs(self, service):
        """By the service, in a verified cell whose limits are those that were asked for."""
        self.open_gate()
        answer = service.tell("run", "scout", "Note the value.")
        self.assertEqual((answer["code"], answer["reply"]), ("ok", f"noted {self.value}"), answer)
        self.assertTrue(answer["by_gateway"], answer)
        return answer

    def assert_limited(self, cgroup):
        read = {name: (cgroup / name).read_text().split() for name in ("memory.max", "memory.swap.max", "pids.max", "cpu.max")}
        self.assertEqual((read["memory.max"], read["memory.swap.max"]), ([str(LIMITS["memory_bytes"])], ["0"]))
        self.assertEqual(read["pids.max"], [str(LIMITS["pids"])])
        quota, period = map(int, read["cpu.max"])
        self.assertEqual(quota * 1000 // period, LIMITS["cpu_millis"])

    def assert_cells_are_limited(self, service):
        """The one cell of a task that runs, below the service's own cgroup."""
        [cell] = service.cells()
        self.assert_limited(cell)


class InstalledPackage(Package):
    def test_of_a_user(self):
        self.assertTrue(ZSH_COMPLETION.is_file())
        service = self.user_service()
        service.ask("enable", "--now", GATEWAY)
        # Type=notify: it is told by the gateway itself.
        self.assertEqual((service.property("ActiveState"), service.property("Type")), ("active", "notify"))
        self.assert_task_runs(service)
        # Stopped while a task runs: it goes on to its end.
        task = self.submit(service)
        self.assert_cells_are_limited(service)
        service.ask("stop", "--no-block", GATEWAY)
        service.wait_for("ActiveState", "deactivating")
        self.assertEqual(service.tell("show", task)["state"], "running")
        self.open_gate()
        service.wait_for("ActiveState", "inactive", "failed")
        self.assertEqual(service.property("Result"), "success")
        told = service.tell("show", task)
        self.assertEqual((told["state"], told["answer"]["reply"]), ("done", f"noted {self.value}"), told)


class OperatedPackage(Package):
    """What takes longer."""

    def wait_for_end(self, service, task):
        self.wait_until(lambda: service.tell("show", task)["state"] != "running", "the task does not end")
        return service.tell("show", task)

    def waiter(self, service):
        """A client that waits for a task, held in the middle."""
        self.close_gate()
        client = subprocess.Popen(service.client("submit", "scout", "--path", "bus", "--wait", "--json", "Note the value."),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        self.addCleanup(client.communicate)
        self.addCleanup(client.kill)
        self.wait_until(pathlib.Path(f"{self.gate}.held").exists, "the task did not come as far as it should")
        return client

    def test_without_a_home_it_is_not_tried_again(self):
        service = self.user_service()
        shutil.rmtree(service.home)
        self.assertNotEqual(self.run_in(service.systemctl, "start", GATEWAY).returncode, 0)
        self.assertEqual([service.property(name) for name in ("ActiveState", "ExecMainStatus", "NRestarts")],
                         ["failed", "2", "0"])
        service.ask("reset-failed", GATEWAY)

    def test_a_gateway_that_hangs_is_replaced(self):
        service = self.user_service()
        service.set(service.variable, "WatchdogSec=30", "RestartSec=1")
        service.ask("start", GATEWAY)
        client = self.waiter(service)
        [task] = service.tell("ps")
        hung = service.property("MainPID")
        os.kill(int(hung), 19)
        self.wait_until(lambda: service.property("MainPID") not in ("0", hung), "the gateway is not started again")
        service.wait_for("ActiveState", "active")
        self.assertEqual(service.property("NRestarts"), "1")
        out, err = client.communicate(timeout=WAIT_S)
        self.assertEqual(client.returncode, 4, out + err)
        told = self.wait_for_end(service, task["id"])
        self.assertEqual((told["state"], told["code"]), ("interrupted", "interrupted"), told)
        self.assertEqual(service.cells(), [])
        # Whoever asks is served as before.
        self.assert_task_runs(service)

    def test_what_outlasts_its_grace_is_cancelled_and_told(self):
        service = self.user_service(NATIVE + "\nmax_concurrent = 1")  # so that the second waits
        service.set(service.variable, "ExecStart=", "ExecStart=/usr/bin/taskcell-gateway --drain-seconds 2")
        service.ask("start", GATEWAY)
        client = self.waiter(service)
        [task] = service.tell("ps")
        waiting = service.tell("submit", "scout", "--path", "bus", "Note it later.")["task_id"]
        service.ask("stop", GATEWAY)
        self.assertEqual(service.property("Result"), "success")
        out, err = client.communicate(timeout=WAIT_S)
        self.assertEqual((client.returncode, json.loads(out)["code"]), (130, "stopped"), err)
        self.assertEqual(service.tell("show", task["id"])["state"], "cancelled")
        # What waited is there at the next start.
        self.assertEqual(service.tell("show", waiting)["state"], "accepted")
        self.open_gate()
        service.ask("start", GATEWAY)
        self.wait_until(lambda: service.tell("show", waiting)["state"] == "done", "what waited does not run")

    def test_a_killed_one_comes_back_and_tells_what_was_interrupted(self):
        service = self.user_service()
        service.set(service.variable, "RestartSec=1")
        service.ask("start", GATEWAY)
        task = self.submit(service)
        killed = service.property("MainPID")
        os.kill(int(killed), 9)
        self.wait_until(lambda: service.property("MainPID") not in ("0", killed), "the gateway is not started again")
        told = self.wait_for_end(service, task)
        self.assertEqual((told["state"], told["code"]), ("interrupted", "interrupted"), told)
        self.assert_task_runs(service)

    def test_podman_by_the_service(self):
        socket = f"/run/user/{pwd.getpwnam('alice').pw_uid}/podman/podman.sock"
        service = self.user_service(f'engine_socket = "{socket}"', f'image = "{test_tasks.IMAGE}"\n')
        service.ask("start", "podman.socket")
        self.addCleanup(self.run_in, service.systemctl, "stop", "podman.socket", "podman.service")
        engine = test_engines.Engine(socket)
        engine.wait_until_it_answers()
        engine.import_busybox()
        service.ask("start", GATEWAY)
        self.assert_task_runs(service)
        self.assertEqual(json.loads(engine.ask("GET", "/containers/json?all=1")), [])
        task = self.submit(service)
        [container] = json.loads(engine.ask("GET", "/containers/json"))
        state = json.loads(engine.ask("GET", f"/containers/{container['Id']}/json"))["State"]
        of_its_process = pathlib.Path(f"/proc/{state['Pid']}/cgroup").read_text().strip().removeprefix("0::")
        levels = pathlib.Path("/sys/fs/cgroup" + of_its_process)
        limited = next(level for level in (levels, *levels.parents) if (level / "memory.max").read_text() != "max\n")
        self.assert_limited(limited)
        self.open_gate()
        self.assertEqual(self.wait_for_end(service, task)["state"], "done")

    def test_of_the_system(self):
        # The package's own user, without a login and with subordinate ids of its own.
        entry = pwd.getpwnam("taskcell")
        self.assertEqual((entry.pw_dir, entry.pw_shell), ("/var/lib/taskcell", "/usr/sbin/nologin"))
        self.assertIn("taskcell:", pathlib.Path("/etc/subuid").read_text())
        home = pathlib.Path(entry.pw_dir)
        self.make_home(home, "taskcell")
        place = ["setpriv", "--reuid", "taskcell", "--regid", "taskcell", "--init-groups", "--"]
        service = Service(self, "root", place, [], "/run/systemd/system", home)
        service.systemctl = ["systemctl"]
        service.set(f"Environment=OPENAI_BASE_URL=http://127.0.0.1:{self.start_provider()}/v1")
        service.ask("enable", "--now", GATEWAY)
        self.assertEqual((service.property("ActiveState"), service.property("User")), ("active", "taskcell"))
        self.assert_task_runs(service)
        self.submit(service)
        self.assert_cells_are_limited(service)
        self.open_gate()

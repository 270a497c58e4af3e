"""Each container engine starts and makes a container with limits: from an image imported here, and they are read inside;
or taskcell-probe makes both, and breaks them."""

import contextlib
import http.client
import io
import json
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time

import places
from case import Case

IMAGE = "localhost/lab"
START_S = 300
MEMORY, PIDS, CPUS = 64 << 20, 24, 0.5
# Where a busy machine takes longer for its containerd than dockerd waits, it is tried again.
ROOTLESS_DOCKER = ["--collect", "-p", "KillMode=mixed", "-p", "Restart=on-failure", "-p", "StartLimitIntervalSec=0",
                   "-E", "PATH=/usr/share/docker.io/contrib:/usr/sbin:/usr/bin:/sbin:/bin",
                   "/usr/share/docker.io/contrib/dockerd-rootless.sh", "--bridge=none", "--iptables=false", "--ip6tables=false"]
READ = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/cpu.max"


def add_link(tar, name, target):
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    tar.addfile(link)


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("engine", timeout=120)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Engine:
    """The Docker API on a socket."""

    def __init__(self, path):
        self.path = path

    def ask(self, method, what, body=None, kind="application/json"):
        with contextlib.closing(Connection(self.path)) as connection:
            connection.request(method, what, body, {"Content-Type": kind} if body is not None else {})
            answer = connection.getresponse()
            content = answer.read()
        if answer.status >= 300:
            raise AssertionError(f"{method} {what}: {answer.status} {content[:400]!r}")
        return content

    def wait_until_it_answers(self):
        end = time.monotonic() + START_S
        while True:
            try:
                # What is asked first takes long in emulation: longer than whoever is tested waits.
                for what in ("/_ping", "/version", "/info"):
                    self.ask("GET", what)
                return
            except OSError:
                if time.monotonic() > end:
                    subprocess.run(["journalctl", "-b", "-n", "40", "-o", "cat", "--no-pager"], check=False)
                    raise
                time.sleep(0.2)

    def import_busybox(self):
        def pack(tar):
            tar.add(os.path.realpath("/bin/busybox"), "bin/busybox")
            for name in ("sh", "cat"):
                add_link(tar, "bin/" + name, "busybox")
        self._import(pack)

    def import_small_root(self):
        """An image with bash, and cat, head and sleep."""
        def pack(tar):
            with tempfile.TemporaryDirectory() as root:
                subprocess.run([places.LAB + "/tests/support/make_small_root.sh", root], check=True)
                for name in sorted(os.listdir(root)):
                    tar.add(os.path.join(root, name), name)
            add_link(tar, "usr/bin/sh", "bash")
        self._import(pack)

    def _import(self, pack):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as tar:
            pack(tar)
        self.ask("POST", f"/images/create?fromSrc=-&repo={IMAGE}&tag=latest", packed.getvalue(), "application/x-tar")

    def output_of(self, command):
        """What a container without network and with limits printed on its standard output."""
        made = json.loads(self.ask("POST", "/containers/create", json.dumps({
            "Image": IMAGE, "Cmd": ["/bin/sh", "-c", command], "Tty": True,
            "HostConfig": {"NetworkMode": "none", "Memory": MEMORY, "MemorySwap": MEMORY, "PidsLimit": PIDS,
                           "NanoCpus": int(CPUS * 1e9), "CgroupnsMode": "private"}})))
        one = "/containers/" + made["Id"]
        try:
            self.ask("POST", one + "/start")
            self.ask("POST", one + "/wait")
            return self.ask("GET", one + "/logs?stdout=1&stderr=1").decode()
        finally:
            self.ask("DELETE", one + "?force=1")


class Engines(Case):
    def assert_engine(self, place, socket_path):
        """In a container of the engine the limits it was asked for are in force. The place is that of the engine's user."""
        engine = Engine(socket_path)
        engine.wait_until_it_answers()
        engine.import_busybox()
        memory, pids, quota, period = engine.output_of(READ).split()
        print(f"lab: limits in a container of {socket_path}: memory {memory} pids {pids} cpu {quota}/{period}")
        self.assertEqual((int(memory), int(pids), int(quota) / int(period)), (MEMORY, PIDS, CPUS))

    def test_rootful_docker(self):
        subprocess.run(["systemctl", "start", "docker.service"], check=True)
        self.addCleanup(subprocess.run, ["systemctl", "stop", "docker.service", "docker.socket", "containerd.service"])
        self.assert_engine(places.root(), "/run/docker.sock")

    def test_rootless_podman(self):
        alice = places.manager("alice")
        # It ends by itself after 5 s without a request, and takes longer to come back in emulation than is waited for.
        stays = pathlib.Path("/run/systemd/user/podman.service.d/lab.conf")
        stays.parent.mkdir(parents=True, exist_ok=True)
        self.addCleanup(shutil.rmtree, stays.parent)
        stays.write_text("[Service]\nExecStart=\nExecStart=/usr/bin/podman system service --time=0\n")
        subprocess.run([*alice, "systemctl", "--user", "daemon-reload"], check=True)
        subprocess.run([*alice, "systemctl", "--user", "start", "podman.socket"], check=True)
        self.addCleanup(subprocess.run, [*alice, "systemctl", "--user", "stop", "podman.socket", "podman.service"])
        self.assert_engine(alice, f"/run/user/{pwd.getpwnam('alice').pw_uid}/podman/podman.sock")

    def test_rootless_docker(self):
        alice = places.manager("alice")
        subprocess.run(
            [*alice, "systemd-run", "-q", "--user", "--unit=lab-docker", "-p", "Delegate=yes", *ROOTLESS_DOCKER,
             "--exec-opt", "native.cgroupdriver=systemd"], check=True)
        self.addCleanup(subprocess.run, [*alice, "systemctl", "--user", "stop", "lab-docker.service"])
        self.assert_engine(alice, f"/run/user/{pwd.getpwnam('alice').pw_uid}/docker.sock")


class ProbedEngines(Engines):
    def assert_engine(self, place, socket_path):
        """No limit of a container breaks, and nothing that the probe made is left in the engine or beside it."""
        engine = Engine(socket_path)
        engine.wait_until_it_answers()
        before = self.things(engine)
        self.assert_no_limit_breaks(place, "engine", "unix://" + socket_path)
        self.assertEqual(self.things(engine), before)
        self.assert_nothing_left()

    def things(self, engine):
        """The containers and images of the engine, and the directories of probes."""
        listed = [sorted(each["Id"] for each in json.loads(engine.ask("GET", what)))
                  for what in ("/containers/json?all=1", "/images/json?all=1")]
        scratch = [str(path) for top in ("/tmp", "/run/user") for path in pathlib.Path(top).rglob("taskcell-probe-*")]
        return listed + [sorted(scratch)]

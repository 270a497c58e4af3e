"""The ways by which others' sandboxes were left, tried from inside a task's cell on rootless Podman, in a network where all that
must not be reached is there; and outside, where each of them works."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import places
import test_attack
import test_tasks

SUPPORT = places.LAB + "/tests/support"
PUBLIC, METADATA, PRIVATE, BRIDGE, METADATA_V6 = "93.184.215.14", "169.254.169.254", "10.1.2.3", "172.17.0.1", "fd00:ec2::254"
HOSTS = f"""127.0.0.1 localhost lab
{PUBLIC} files.example.org
{PUBLIC} other.example.org
{METADATA} meta.example.org
{PRIVATE} private.example.org
127.0.0.1 loop.example.org
127.0.0.1 mixed.example.org
{PUBLIC} mixed.example.org
"""
ALLOWED = ["files.example.org", "meta.example.org", "private.example.org", "loop.example.org", "mixed.example.org"]
ENDS_S = 120

# What each way may come to in a cell, and whether the same script gets through by it outside. See ways_out.sh.
UNREACHABLE = ("no route", "not permitted")
NAME = ("no such name", "no route")  # Podman copies the host's /etc/hosts into its containers
CONTAINED = {
    "address": (UNREACHABLE, True), "other-port": (UNREACHABLE, True), "name": (NAME, True),
    "name-server": (("no route",), True), "datagram": (("no route",), True), "metadata": (UNREACHABLE, True),
    "metadata-name": (NAME, True), "private": (UNREACHABLE, True), "bridge": (UNREACHABLE, True),
    "metadata-v6": ((*UNREACHABLE, "Cannot assign requested address"), True), "addresses-v6": (("none",), True),
    "abstract-sockets": (("none",), True), "engine-socket": (("none",), True), "rules": (("none",), True),
    "settings": (("none",), True), "workspace": (("none",), True), "control": (("through",), True),
    "placeholder": (("through",), True), "server-search": (("refused: egress_server_tool",), True),
    "server-mcp": (("refused: egress_server_tool",), True), "server-code": (("refused: egress_server_tool",), True),
    "server-computer": (("refused: egress_server_tool",), True),
    "server-unknown": (("refused: egress_server_tool",), True), "server-url": (("refused: egress_url",), True),
    "stored": (("refused: egress_field",), True), "other-model": (("refused: egress_model",), True),
    "upgrade": (("refused: egress_upgrade",), False), "absolute": (("refused: egress_http",), False),
    "host-header": (("refused: egress_host",), False), "keep-alive": (("refused: egress_host",), False),
    "tunnel": (("refused: egress_http",), False), "smuggle": (("refused: egress_http",), False),
    "files": (("refused: egress_path",), False), "credential": (("none",), True), "process-1": (("not permitted",), True),
}
# The same by CONNECT, and what comes of it by a proxy that stops nobody; "": not asked there. See connect_ways.sh.
BY_CONNECT = {
    "control": ("through", "through"), "other-host": ("refused: egress_host", "through"),
    "other-port": ("refused: egress_host", "through"), "sub-domain": ("refused: egress_host", ""),
    "server-name": ("alert", "through"), "no-server-name": ("alert", "through"), "nested": ("alert", ""),
    "metadata-name": ("alert", "through"), "private-name": ("alert", "through"), "loopback-name": ("alert", "through"),
    "mixed-name": ("alert", "through"), "address": ("refused: egress_connect", "through"),
    "metadata-address": ("refused: egress_connect", "through"), "decimal": ("refused: egress_connect", "through"),
    "octal": ("refused: egress_connect", "through"), "mapped": ("refused: egress_connect", "through"),
    "trailing-dot": ("refused: egress_connect", ""), "upper-case": ("refused: egress_connect", "through"),
    "nul": ("refused: egress_connect", ""), "other-host-beside": ("refused: egress_connect", "through"),
    "plain": ("refused: egress_plain_http", ""), "method": ("refused: egress_connect", ""),
}
# What bash cannot try: raw sockets, ICMP, other processes' memory and descriptors.
TOPICS = ("network", "processes", "proc", "init")


def outcomes(text):
    """NAME to what came of it, as the scripts print it."""
    lines = [line.split("\t") for line in text.splitlines()]
    return {parts[0]: parts[2] for parts in lines if len(parts) == 3}


def client_hello(name):
    """The first bytes of a TLS client that asks for a server of that name, or for none."""
    context = ssl.create_default_context()
    context.check_hostname = False
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


class World:
    """All those addresses as this machine's own, with names for them, and somebody who answers on all: whoever speaks first
    gets the first byte of a TLS server's handshake."""

    def __init__(self, case):
        self.reached, self.lock = [], threading.Lock()
        for address in (PUBLIC + "/32", METADATA + "/32", PRIVATE + "/32", BRIDGE + "/32", METADATA_V6 + "/128"):
            subprocess.run(["ip", "address", "add", address, "dev", "lo"], check=True)
            case.addCleanup(subprocess.run, ["ip", "address", "del", address, "dev", "lo"], check=True)
        case.write_for_the_test("/etc/hosts", HOSTS)
        for port in (22, 80, 443):
            listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
            case.addCleanup(listener.close)
            threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
        # Sockets as a host has them.
        hidden = socket.socket(socket.AF_UNIX)
        hidden.bind("\0lab-abstract")
        case.addCleanup(hidden.close)
        if not os.path.exists("/run/docker.sock"):
            engine = socket.socket(socket.AF_UNIX)
            engine.bind("/run/docker.sock")
            case.addCleanup(os.unlink, "/run/docker.sock")
            case.addCleanup(engine.close)

    def _serve(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.reached.append(connection.getsockname()[0].removeprefix("::ffff:"))
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        with contextlib.suppress(OSError), connection:
            connection.settimeout(ENDS_S)
            if connection.recv(4096):
                connection.sendall(b"\x16")

    def taken(self):
        """How often each address was reached since the last time."""
        with self.lock:
            seen, self.reached = self.reached, []
        return {address: seen.count(address) for address in set(seen)}


class WaysOut(test_attack.Attacked, test_tasks.Tasks):
    test_rootful_docker = None
    test_rootless_docker = None

    def assert_engine(self, place, socket_path):
        engine, self.home = self.prepare(socket_path)
        self.scout, self.world = self.home / "agents/scout", World(self)
        (self.scout / "SKILLS").mkdir()
        for each in (self.nothing_leads_out, self.by_connect_only_the_list, self.a_name_that_changes_its_mind,
                     self.no_redirect, self.no_link_widens_what_it_sees, self.without_its_broker_it_ends):
            with self.subTest(each.__name__):
                begun = time.monotonic()
                each(engine)
                print(f"lab: {each.__name__}: {time.monotonic() - begun:.1f} s")
                self.assert_tidy(engine, self.home)
        rows = self.attack(place, *TOPICS, engine="unix://" + socket_path)
        self.assertEqual(set(rows) - test_attack.shown(rows) - test_attack.take_root(rows) - test_attack.lacking(), set())

    def ask(self, scenario, *options, path="/v1", allowed=()):
        """The answer of a task with that list of hosts."""
        places_of_list = json.dumps([host + ":443" for host in allowed])
        (self.scout / "agent.toml").write_text(test_tasks.AGENT + f"[taskcell]\nallow_hosts = {places_of_list}\n")
        self.give_to_alice(self.home)
        self.port = test_tasks.start_provider(self, scenario, *options)
        return self.answer(f"http://127.0.0.1:{self.port}{path}", self.home, "run", "scout", "Try it.")

    def shell(self, *commands, **more):
        return {"steps": [{"do": "shell", "command": command, **more} for command in commands], "reply": "{all}"}

    def nothing_leads_out(self, _engine):
        shutil.copy(SUPPORT + "/ways_out.sh", self.scout / "SKILLS/ways_out")
        tried = "WAYS_MARK=sk-lab WAYS_MODEL=lab-model bash /agent/SKILLS/ways_out 2>&1; echo proxy=${HTTPS_PROXY:-none}"
        log = pathlib.Path(self.scratch, "provider.log")
        answer = self.ask(self.shell(tried), "--log", str(log))
        self.assertEqual(answer["code"], "ok", answer)
        self.assertTrue(answer["reply"].endswith("proxy=none"), "an empty list is no proxy")
        inside = outcomes(answer["reply"])
        self.assertEqual(set(inside), set(CONTAINED))
        self.assertEqual({name: came for name, came in inside.items() if came not in CONTAINED[name][0]}, {})
        self.assertEqual(self.world.taken(), {})
        # The provider saw the placeholder as it is, the credential where it belongs, and nothing that was refused.
        asked = [json.loads(line) for line in log.read_text().splitlines()]
        self.assertTrue([each for each in asked if "sk-taskcell-placeholder" in each["body"]])
        for each in asked:
            self.assertEqual((each["path"], each["authorized"]), ("/v1/chat/completions", True))
            for text in (test_tasks.KEY, "evil.example", "web_search"):
                self.assertNotIn(text, each["body"])
        self.assertGreaterEqual(answer["receipt"]["egress"]["record"]["totals"]["refused"], 14)
        # Another task finds nothing of this one.
        again = self.ask(self.shell(tried))
        self.assertEqual(outcomes(again["reply"])["workspace"], "none")
        self.world.taken()

        script = pathlib.Path(self.scratch, "ways_out")
        shutil.copy(SUPPORT + "/ways_out.sh", script)
        pathlib.Path(self.scratch, "left-by-an-earlier-task").touch()
        ran = self.run_in(["env", "SOMETHING=" + test_tasks.KEY, "WAYS_MARK=sk-lab", "WAYS_MODEL=lab-model"], "bash",
                          str(script), self.port, test_tasks.KEY, cwd=self.scratch)
        outside = outcomes(ran.stdout)
        self.assertEqual([name for name, (_, works) in CONTAINED.items() if works and outside.get(name) != "through"], [],
                         ran.stdout + ran.stderr)
        self.assertEqual(self.world.taken(), {PUBLIC: 3, METADATA: 2, PRIVATE: 1, BRIDGE: 1, METADATA_V6: 1})

    def lay_connect_ways(self):
        shutil.copy(SUPPORT + "/connect_ways.sh", self.scout / "SKILLS/connect_ways")
        for name in (*ALLOWED, "other.example.org", "none"):
            (self.scout / "SKILLS" / name).write_bytes(client_hello(None if name == "none" else name))
        (self.scout / "SKILLS/nested").write_bytes(b"CONNECT other.example.org:443 HTTP/1.1\r\n\r\n")

    def by_connect_only_the_list(self, _engine):
        self.lay_connect_ways()
        answer = self.ask(self.shell("bash /agent/SKILLS/connect_ways /agent/SKILLS 2>&1"), allowed=ALLOWED)
        self.assertEqual(answer["code"], "ok", answer)
        self.assertEqual(outcomes(answer["reply"]), {name: inside for name, (inside, _) in BY_CONNECT.items()})
        self.assertEqual(self.world.taken(), {PUBLIC: 1}, "the control's")
        self.assertEqual(answer["receipt"]["egress"]["allow_hosts"], [host + ":443" for host in ALLOWED])
        # The next task has its own list, an empty one.
        answer = self.ask(self.shell("echo proxy=${HTTPS_PROXY:-none}"))
        self.assertEqual((answer["reply"], answer["receipt"]["egress"]["allow_hosts"]), ("proxy=none", []), answer)

        port_file = pathlib.Path(self.scratch, "proxy-port")
        proxy = subprocess.Popen(["python3", SUPPORT + "/connect_proxy.py", "--to", "0", "--log", "/dev/null",
                                  "--port-file", str(port_file)])
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.kill)
        self.wait_until(port_file.exists)
        ran = self.run_in(["env", f"HTTPS_PROXY=http://127.0.0.1:{port_file.read_text().strip()}"], "bash",
                          SUPPORT + "/connect_ways.sh", str(self.scout / "SKILLS"))
        outside = outcomes(ran.stdout)
        self.assertEqual({name: outside.get(name) for name, (_, came) in BY_CONNECT.items() if came},
                         {name: came for name, (_, came) in BY_CONNECT.items() if came}, ran.stdout + ran.stderr)
        self.assertEqual({METADATA, PRIVATE, "127.0.0.1", PUBLIC} - set(self.world.taken()), set())

    def a_name_that_changes_its_mind(self, _engine):
        """A host of the list is the metadata service at the second connection."""
        self.lay_connect_ways()
        gate = pathlib.Path(self.scratch, "gate")
        one = "bash /agent/SKILLS/connect_ways /agent/SKILLS control 2>&1"
        steps = [{"do": "shell", "command": one}, {"do": "shell", "command": one, "hold": str(gate)}]

        def change():
            self.wait_until(pathlib.Path(f"{gate}.held").exists)
            hosts = pathlib.Path("/etc/hosts")
            hosts.write_text(HOSTS.replace(f"{PUBLIC} files", f"{METADATA} files"))
            pathlib.Path(f"{gate}.go").touch()
        changer = threading.Thread(target=change)
        changer.start()
        answer = self.ask({"steps": steps, "reply": "{0}|{1}"}, allowed=ALLOWED)
        changer.join()
        pathlib.Path("/etc/hosts").write_text(HOSTS)
        before, after = (outcomes(text) for text in answer["reply"].split("|"))
        self.assertEqual((before, after), ({"control": "through"}, {"control": "alert"}), answer)
        self.assertEqual(self.world.taken(), {PUBLIC: 1})

    def no_redirect(self, _engine):
        elsewhere = f"http://{PUBLIC}:80/elsewhere"
        answer = self.ask(self.shell("true"), "--elsewhere", elsewhere, path="/mode/redirect/v1")
        self.assertEqual((answer["code"], answer["reply"]), ("provider_unavailable", None), answer)
        self.assertEqual(self.world.taken(), {})
        self.run_in([], "curl", "-s", "-L", "-m", "20", "-H", "Authorization: Bearer " + test_tasks.KEY, "-d", "{}",
                    f"http://127.0.0.1:{self.port}/mode/redirect/v1/chat/completions")
        self.assertEqual(self.world.taken(), {PUBLIC: 1}, "control: whoever follows it gets there")

    def no_link_widens_what_it_sees(self, _engine):
        canary = pathlib.Path(self.home, "canary")
        canary.write_text("canary-beside-the-agents")
        wiki = self.scout / "wiki"
        (wiki / "linked").symlink_to("../../../canary")
        os.link(canary, wiki / "other-name")
        self.assertIn("canary-beside", (wiki / "linked").read_text(), "control: the host follows it")
        answer = self.ask(self.shell("cat /agent/wiki/linked /agent/wiki/other-name 2>&1; cat /agent/wiki/value.txt"))
        self.assertNotIn("canary-beside", answer["reply"])
        self.assertTrue(answer["reply"].endswith(self.value), "control: " + answer["reply"])

    def without_its_broker_it_ends(self, engine):
        """Killed in the middle of a task, the client takes the cell with it."""
        gate = pathlib.Path(self.scratch, "held-task")
        port = test_tasks.start_provider(self, self.shell("echo never", hold=str(gate)))
        client = subprocess.Popen([*self.client(f"http://127.0.0.1:{port}/v1", "run", "scout", "Wait."), "--home", str(self.home)],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(client.wait)
        self.addCleanup(client.kill)
        self.wait_until(pathlib.Path(f"{gate}.held").exists)
        self.assertEqual(len(json.loads(engine.ask("GET", "/containers/json"))), 1, "control: it runs")
        client.send_signal(signal.SIGKILL)
        self.wait_until(lambda: json.loads(engine.ask("GET", "/containers/json?all=1")) == [])
        # Its run directory is the sweep's, ten minutes later.
        for run in (self.home / "sandbox/runs").iterdir():
            os.utime(run, (time.time() - 1200,) * 2)
        swept = self.answer("http://127.0.0.1:1", self.home, "sweep")
        self.assertEqual((len(swept["interrupted"]), len(swept["directories"]), swept["failures"]), (1, 1, {}), swept)

    def wait_until(self, holds):
        end = time.monotonic() + ENDS_S
        while not holds():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.2)

"""What a person gives to the tasks of a home and takes from them, and what is told about them, on cgroup v2 with an engine whose
cells are root's and one whose cells are a user's own."""

import hashlib
import json
import pathlib
import re
import subprocess
import time

import places
import test_tasks
from case import PROBE_TRIES, was_too_busy

SERVED_S = 300


class OperatedHome(test_tasks.Tasks):
    test_rootless_docker = None

    def assert_engine(self, place, socket_path):
        engine, home = self.prepare(socket_path)
        (home / "agents/scout/agent.toml").write_text(test_tasks.AGENT + "[taskcell]\nexport = true\n")
        self.given = "given to it"
        (home / "given").mkdir()
        (home / "given/text.txt").write_text(self.given)
        self.give_to_alice(home)
        port = test_tasks.start_provider(self, {
            "steps": [{"do": "read", "path": "/agent/wiki/value.txt"}, {"do": "read", "path": "/input/given/text.txt"},
                      {"do": "write", "path": "/workspace/out/kept/report.txt", "content": "{0} {1}"}],
            "reply": "{0} {1}"})
        url = f"http://127.0.0.1:{port}/v1"
        self.assert_files_go_in_and_out(url, home)
        self.assert_gateway_tells_metrics(url, home)
        self.assert_receipts_are_verified(home)
        self.assert_scripts(home)
        self.assert_client_of_the_protocol_is_served(home)
        self.assert_tidy(engine, home)

    def assert_files_go_in_and_out(self, url, home):
        answer = self.answer(url, home, "run", "scout", "--input", str(home / "given"), "Report.")
        report = f"{self.value} {self.given}"
        self.assertEqual((answer["code"], answer["reply"]), ("ok", report), answer)
        self.assertIn({"target": "/input", "writable": False}, answer["receipt"]["cell"]["mounts"])
        self.assertEqual((home / "given/text.txt").read_text(), self.given)
        exported = pathlib.Path(answer["export_path"])
        self.assertEqual(exported.parent, home / "exports")
        left = {str(path.relative_to(exported)): path for path in exported.rglob("*") if path.is_file()}
        self.assertEqual(sorted(left), ["files/kept/report.txt", "manifest.json"])
        self.assertEqual(left["files/kept/report.txt"].read_text(), report)
        self.assertEqual({(path.owner(), path.stat().st_mode & 0o777) for path in left.values()}, {("alice", 0o600)})
        manifest = json.loads(left["manifest.json"].read_text())
        self.assertEqual(manifest["files"], [{"path": "kept/report.txt", "bytes": len(report),
                                              "sha256": hashlib.sha256(report.encode()).hexdigest()}])

    def as_alice(self, *words, **options):
        return self.run_in(places.manager("alice"), *words, **options)

    def assert_gateway_tells_metrics(self, url, home):
        said = pathlib.Path(self.scratch, "gateway")
        with said.open("w") as file:
            gateway = subprocess.Popen(
                [*places.manager("alice"), "env", "OPENAI_BASE_URL=" + url, places.PROGRAMS + "/taskcell-gateway", "--home",
                 str(home)], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        self.addCleanup(gateway.wait)
        self.addCleanup(gateway.kill)
        end = time.monotonic() + SERVED_S
        while '"accepting":true' not in self.asked(home, "/v1/status").stdout:
            self.assertIsNone(gateway.poll(), said.read_text())
            self.assertLess(time.monotonic(), end, said.read_text())
        answer = self.answer(url, home, "run", "scout", "Report.")
        self.assertEqual((answer["code"], answer["by_gateway"]), ("ok", True), answer)
        metrics = self.asked(home, "/metrics").stdout
        for line in (r'taskcell_tasks_total\{state="done",code="ok"\} 1', "taskcell_tasks_running 0", "taskcell_tasks_waiting 0",
                     "taskcell_task_duration_seconds_count [1-9]", r'taskcell_tokens_total\{kind="input"\} [1-9]',
                     "taskcell_egress_requests_total [1-9]", "taskcell_egress_refused_total 0",
                     r'taskcell_account_spent_cents\{account="lab"\} 0\.0+'):
            self.assertRegex(metrics, re.compile(rf"^{line}", re.M))
        gateway.terminate()
        self.assertEqual(gateway.wait(SERVED_S), 0, said.read_text())

    def asked(self, home, target):
        """What the gateway's API answers to alice."""
        return self.as_alice("curl", "-sS", "-m", "60", "--unix-socket", f"{home}/taskcell.sock", "http://gateway" + target)

    def verify(self, home):
        ran = self.run_in(self.client(self.url, "audit", "verify"), "--home", str(home), "--json")
        return ran.returncode, json.loads(ran.stdout)

    def assert_receipts_are_verified(self, home):
        """As they were written; and with one byte that is another, in the first line and in the last, that line is named."""
        chain = home / "receipts.jsonl"
        written = chain.read_bytes()
        lines = written.splitlines(keepends=True)
        self.assertGreaterEqual(len(lines), 2, "one of the client's, one of the gateway's")
        status, told = self.verify(home)
        self.assertEqual((status, told["valid"], told["receipts"], told["faults"]), (0, True, len(lines), []), told)
        for at in (0, len(lines) - 1):
            with self.subTest(line=at + 1):
                place = sum(map(len, lines[:at])) + lines[at].index(b'"agent":"scout"') + len('"agent":"')
                changed = bytearray(written)
                changed[place] ^= 1
                chain.write_bytes(changed)
                status, told = self.verify(home)
                self.assertEqual((status, told["valid"], {fault["line"] for fault in told["faults"]}), (1, False, {at + 1}), told)
        chain.write_bytes(written)
        self.assertEqual(self.verify(home)[0], 0)

    def assert_scripts(self, home):
        """As a person sees them: the script's own output, and its status."""
        for _ in range(PROBE_TRIES):
            ran = subprocess.run([*self.client(self.url, "script"), "--language", "bash", "--home", str(home)], text=True,
                                 input="echo $((6 * 7)); echo told >&2; exit 9", capture_output=True, timeout=test_tasks.SHELL_S,
                                 check=False)
            if not was_too_busy(ran.stderr):
                break
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (9, "42\n", "told\n"))

    def assert_client_of_the_protocol_is_served(self, home):
        call = {"language": "bash", "code": "echo $((6 * 7))"}
        messages = ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
                    {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "execute_program", "arguments": call}})
        for _ in range(PROBE_TRIES):
            ran = subprocess.run([*self.client(self.url, "mcp"), "--home", str(home)], text=True, capture_output=True,
                                 input="".join(json.dumps(message) + "\n" for message in messages), timeout=test_tasks.SHELL_S,
                                 check=False)
            if not was_too_busy(ran.stdout):
                break
        self.assertEqual(ran.returncode, 0, ran.stderr)
        answers = {answer["id"]: answer["result"] for answer in map(json.loads, ran.stdout.splitlines())}
        self.assertIn("taskcell", json.dumps(answers[1]["serverInfo"]))
        self.assertEqual((answers[2]["isError"], answers[2]["content"]), (False, [{"type": "text", "text": "42\n"}]))

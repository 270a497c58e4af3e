"""What the lab's checks have in common."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import places

LAUNCH = places.PROGRAMS + "/taskcell-launch"
PROBE = places.PROGRAMS + "/taskcell-probe"
PROBE_TRIES = 4
UNENFORCED = "resource_limits_unenforced"
LIMITS = ["--memory", "64M", "--pids", "16", "--cpus", "0.5"]
TIMEOUT_S = 600

GREEDY = "x = bytearray(200 << 20)"
FORKS = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 2 & done; wait"


def was_too_busy(report):
    """Whether an engine or a cell did not answer in time, as happens in emulation: worth asking again."""
    return any(text in report for text in ("no whole answer within", "said nothing in time"))


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="lab-")
        os.chmod(self.scratch, 0o777)
        self.addCleanup(shutil.rmtree, self.scratch)

    def run_in(self, place, *argv, timeout=TIMEOUT_S, **options):
        """Runs a program in a place; its standard streams as text."""
        return subprocess.run([*place, *argv], capture_output=True, text=True, errors="replace", timeout=timeout,
                              stdin=subprocess.DEVNULL, **options)

    def write_for_the_test(self, path, text):
        """Writes a file of the kernel's, and what it held again afterwards."""
        path = pathlib.Path(path)
        self.addCleanup(path.write_text, path.read_text())
        path.write_text(text)

    def launch(self, place, *argv):
        """Runs a cell with the limits in LIMITS; what the launcher said, and its report."""
        report = pathlib.Path(self.scratch, "report.json")
        report.unlink(missing_ok=True)
        ran = self.run_in(place, LAUNCH, *LIMITS, "--report", str(report), "--", *argv)
        ran.report = json.loads(report.read_text()) if report.exists() else None
        return ran

    def assert_limits_hold(self, place):
        """Memory and pids are broken from inside, cpu and the status are looked at."""
        ran = self.launch(place, "sh", "-c", "exit 7")
        self.assertEqual(ran.returncode, 7, ran.stderr)
        ran = self.launch(place, "python3", "-c", GREEDY)
        self.assertIsNotNone(ran.report, ran.stderr)
        self.assertEqual(ran.report["signal"], 9, ran.report)
        self.assertGreaterEqual(ran.report["oom_kills"], 1, ran.report)
        ran = self.launch(place, "sh", "-c", FORKS)
        self.assertGreaterEqual(ran.report["pids_refusals"], 1, ran.report)

    def assert_refused(self, place, *texts):
        """No cell is made, and each of the texts is in the launcher's one message."""
        ran = self.launch(place, "true")
        self.assertEqual(ran.returncode, 125, ran.stderr)
        for text in texts:
            self.assertIn(text, ran.stderr)
        return ran

    def break_limits(self, place, *words):
        """What `taskcell-probe live` or `engine` tells; asked again while the machine is too busy for it to tell."""
        for _ in range(PROBE_TRIES):
            ran = self.run_in(place, PROBE, *words, "--json")
            self.assertTrue(ran.stdout.startswith("{"), f"status {ran.returncode} {ran.stdout} {ran.stderr}")
            told = json.loads(ran.stdout)
            if told["overall"] != "unknown" or told["refusal"] and told["refusal"]["code"] == UNENFORCED:
                break
        return told

    def assert_no_limit_breaks(self, place, *words):
        """Every limit holds, and whoever made the cell told the truth about it."""
        told = self.break_limits(place, *words)
        wrong = [row for row in told["limits"] if row["verdict"] != "held" or row["lie"]]
        self.assertEqual((wrong, told["refusal"], told["differences"], told["warnings"]), ([], None, [], []))
        self.assertEqual(told["overall"], "held")

    def assert_probe_makes_no_cell(self, place, *texts):
        """`taskcell-probe live` is refused for want of limits, and each of the texts is in the reason."""
        told = self.break_limits(place, "live")
        self.assertIsNotNone(told["refusal"], told)
        self.assertEqual(told["refusal"]["code"], UNENFORCED, told["refusal"])
        for text in texts:
            self.assertIn(text, told["refusal"]["text"])

    def switch_swap_on(self):
        swap = "/var/swap"
        subprocess.run(["fallocate", "-l", "512M", swap], check=True)
        os.chmod(swap, 0o600)
        self.addCleanup(os.unlink, swap)
        subprocess.run(["mkswap", "-q", swap], check=True)
        subprocess.run(["swapon", swap], check=True)
        self.addCleanup(subprocess.run, ["swapoff", swap], check=True)

    def assert_nothing_left(self):
        left = [str(path) for path in pathlib.Path("/sys/fs/cgroup").rglob("run-" + "[0-9a-f]" * 32)]
        self.assertEqual(left, [])

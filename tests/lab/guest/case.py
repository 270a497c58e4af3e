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
LIMITS = ["--memory", "64M", "--pids", "16", "--cpus", "0.5"]
TIMEOUT_S = 600

GREEDY = "x = bytearray(200 << 20)"
FORKS = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 2 & done; wait"


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

    def assert_nothing_left(self):
        left = [str(path) for path in pathlib.Path("/sys/fs/cgroup").rglob("run-" + "[0-9a-f]" * 32)]
        self.assertEqual(left, [])

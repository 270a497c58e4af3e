"""What a start costs where cgroups are version 2: asked for by `./dev bench starts-v2`, which takes the tables from the console."""

import pathlib
import re

import places
from case import Case

ROWS = ("bwrap", "taskcell-launch", "crun", "the floor")


class Starts(Case):
    def test_side_by_side(self):
        asked = re.search(r"lab\.rounds=(\d+)", pathlib.Path("/proc/cmdline").read_text())
        ran = self.run_in(places.root(), places.LAB + "/tests/support/bench_starts.sh", places.LAB + "/build/release",
                          asked[1] if asked else "5", "--counted")
        print("--- starts\n" + ran.stdout + "--- end of starts", flush=True)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertNotIn("not measured", ran.stdout)
        for row in ROWS:
            self.assertRegex(ran.stdout, rf"\| .*{row}.*\| \d+ \| \d+\.\d\d \|")

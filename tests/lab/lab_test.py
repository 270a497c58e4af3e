"""What lab.sh tells of variants that could not run. Nothing boots: everything it calls is a stand-in."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ("qemu-system-x86_64", "mmdebstrap", "mke2fs", "depmod", "cpio")
PLAN = """#!/usr/bin/env python3
import sys
if sys.argv[1] in ("variants", "names"):
    print("mini", "mini-backports", "hybrid", sep="\\n")
if sys.argv[1] == "show":
    suite = "late" if sys.argv[2] == "mini-backports" else "bookworm"
    print(suite, "cloud", "unified", "mini")
"""
NOTHING = "#!/bin/sh\nexit 0\n"


class LabTest(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.top = pathlib.Path(held.name)
        lab = self.top / "tests/lab"
        (lab / "guest").mkdir(parents=True)
        shutil.copy(HERE / "lab.sh", lab)
        self.write(lab / "guest/run.py", PLAN)
        for name in ("initrd.sh", "mini.sh", "boot.sh", "judge.py"):
            self.write(lab / name, "" if name.endswith(".py") else NOTHING)
        for name in PROGRAMS:
            self.write(self.top / "bin" / name, NOTHING)

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def kernels(self, condition):
        """A kernel is to be had where the shell's `condition` on $1, its suite, is met."""
        self.write(self.top / "tests/lab/kernel.sh",
                   f"#!/bin/sh\n{condition} || exit 1\nmkdir -p $3\necho 6.1 >$3/release\n")

    def status(self, *variants, **environment):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("TASKCELL_")}
        ran = subprocess.run([self.top / "tests/lab/lab.sh", *variants], capture_output=True, text=True, check=False,
                             env={**clean, "PATH": f"{self.top}/bin:{clean['PATH']}",
                                  "LAB_ACCELERATOR": "tcg", "TASKCELL_LAB_DIR": str(self.top / "state"), **environment})
        self.output = ran.stdout + ran.stderr
        return ran.returncode

    def test_all_variants_with_a_kernel_pass(self):
        self.kernels("true")
        self.assertEqual(self.status(), 0, self.output)
        self.assertNotIn("Skipped", self.output)

    def test_nothing_run_is_a_skip_and_no_success(self):
        self.kernels("false")
        self.assertEqual(self.status(), 77, self.output)
        self.assertEqual(self.status("mini"), 77, self.output)
        self.assertIn("Skipped: lab: mini: no kernel", self.output)

    def test_where_all_must_run_a_missing_kernel_is_a_failure(self):
        self.kernels("false")
        self.assertEqual(self.status(TASKCELL_TEST_MUST_RUN="1"), 1, self.output)
        self.assertEqual(self.status("mini", TASKCELL_TEST_MUST_RUN="1"), 1, self.output)
        self.kernels("[ $1 != late ]")
        self.assertEqual(self.status(TASKCELL_TEST_MUST_RUN="1"), 1, self.output)

    def test_only_the_backports_kernel_may_be_missing_beside_others(self):
        self.kernels("[ $1 != late ]")
        self.assertEqual(self.status(), 0, self.output)
        self.kernels("[ $1 = late ]")
        self.assertEqual(self.status(), 77, self.output)

    def test_a_failed_variant_outweighs_a_skipped_one(self):
        self.kernels("[ $1 = late ]")
        (self.top / "tests/lab/judge.py").write_text("raise SystemExit(1)")
        for variants in (("mini-backports", "hybrid"), ("hybrid", "mini-backports")):
            self.assertEqual(self.status(*variants), 1, self.output)

    def test_a_machine_that_cannot_be_made_is_no_skip(self):
        self.kernels("true")
        self.write(self.top / "tests/lab/initrd.sh", "#!/bin/sh\nexit 1\n")
        self.assertEqual(self.status("mini"), 1, self.output)


if __name__ == "__main__":
    unittest.main()

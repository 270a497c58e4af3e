#!/usr/bin/env python3
"""A guest's results count only when all of what was asked came back, from that kernel and mode."""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import unittest
import xml.etree.ElementTree as xml

import judge

KERNEL, MODE = "6.1.0-1-cloud-amd64", "unified"
A, B = '<testcase classname="S" name="a"/>', '<testcase name="b"/>'
SKIPPED = '<testcase name="b"><skipped/></testcase>'
FAILED = '<testcase name="b"><failure message="why"/></testcase>'


def judged(cases, kernel=KERNEL, mode=MODE, expected=("p.S.a", "p.b")):
    files = {"told": f"kernel {kernel}\ncgroup_mode {mode}\n".encode(), "p.xml": f"<testsuite>{cases}</testsuite>".encode()}
    suite, found = judge.read_cases(files)
    return found + judge.complaints(files, suite, list(expected), KERNEL, MODE)


class JudgeTest(unittest.TestCase):
    def test_all_that_was_asked_passes(self):
        self.assertEqual(judged(A + B), [])

    def test_none_is_never_enough(self):
        self.assertEqual(judged("", expected=()), ["no test was asked for"])
        self.assertEqual(judge.complaints({}, [], ["a"], KERNEL, MODE),
                         [f"kernel is None, not {KERNEL}", f"cgroup_mode is None, not {MODE}", "not run: a"])

    def test_each_difference_is_named(self):
        for found, complaint in (
                (judged(A), "not run: p.b"),
                (judged(A + B + '<testcase name="c"/>'), "not asked for: p.c"),
                (judged(A + B + B), "run 2 times: p.b"),
                (judged(A + '<testcase name="b" status="notrun"/>'), "not run: p.b"),
                (judged(A + SKIPPED), "skipped: p.b\n"),
                (judged(A + FAILED), "failure: p.b\nwhy"),
                (judged(A + B, kernel="5"), f"kernel is 5, not {KERNEL}"),
                (judged(A + B, mode="legacy"), f"cgroup_mode is legacy, not {MODE}")):
            self.assertEqual(found, [complaint])

    def test_half_a_report_is_none(self):
        [broken, *missing] = judged(A + B + "<")
        self.assertIn("p.xml is no report", broken)
        self.assertEqual(missing, ["not run: p.S.a", "not run: p.b"])

    def test_an_empty_disk_has_no_files(self):
        self.assertEqual(judge.read_results("/dev/null"), {})


class VerdictTest(unittest.TestCase):
    """The whole program, on a disk as a guest leaves it."""

    def run_on(self, cases, kernel=KERNEL, mode=MODE, tar=True):
        """Its exit status, what it printed, and the tests in the report it wrote."""
        with tempfile.TemporaryDirectory() as scratch:
            disk, names, out = (os.path.join(scratch, name) for name in ("disk", "names", "out.xml"))
            with open(names, "w", encoding="utf-8") as file:
                file.write("p.S.a\np.b\n")
            with open(disk, "wb") as file:
                if tar:
                    write_tar(file, told=f"kernel {kernel}\ncgroup_mode {mode}\n", **{"p.xml": f"<x>{cases}</x>"})
                file.truncate(1 << 20)
            ran = subprocess.run([sys.executable, "-B", judge.__file__, "v", disk, names, KERNEL, MODE, out],
                                 capture_output=True, text=True, timeout=60)
            return ran.returncode, ran.stdout, [case.get("name") for case in xml.parse(out).iter("testcase")]

    def test_the_truth_passes(self):
        self.assertEqual(self.run_on(A + B), (
            0, f"lab: v: 2 tests run, 0 failed, 0 skipped; kernel {KERNEL}, cgroup mode {MODE}\n", ["p.S.a", "p.b"]))

    def test_each_lie_fails(self):
        for lie in (dict(cases=A), dict(cases=A + SKIPPED), dict(cases=A + FAILED), dict(cases=A + B, mode="hybrid"),
                    dict(cases=A + B, kernel="6.1.0-2-cloud-amd64"), dict(cases="")):
            with self.subTest(lie):
                self.assertEqual(self.run_on(**lie)[0], 1)

    def test_a_guest_that_wrote_nothing_is_told_apart(self):
        self.assertEqual(self.run_on(A + B, tar=False)[0], 2)


def write_tar(file, **contents):
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name, text in contents.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))


if __name__ == "__main__":
    unittest.main()

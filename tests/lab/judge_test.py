#!/usr/bin/env python3
"""A guest's results count only when all of what was asked came back, from that kernel and mode."""

import unittest

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


if __name__ == "__main__":
    unittest.main()

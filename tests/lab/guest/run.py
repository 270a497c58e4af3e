#!/usr/bin/env python3
"""Runs a variant's tests.

run.py list VARIANT TESTS_DIR   on the host: the names of the tests that must come back, one a line
run.py show VARIANT             on the host: its kernel's suite and flavour, the cgroup mode it must find, "mini", "full" or
                                "counted" (a full one), its policy or "none", and the words of its kernel's command line
run.py mini VARIANT             on the host: a mini guest's /plan
run.py variants                 on the host: the names of the variants that a run of all has
run.py names                    on the host: the names of all variants
run.py programs VARIANT...      on the host: what of the built tests they need
run.py run                      in the guest: runs them, writes a tar of results to the disk that is for them
"""

import io
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import unittest
import xml.etree.ElementTree as xml

import places
from plan import VARIANTS

GUEST_TESTS = pathlib.Path(places.LAB, "build/release/tests")
RESULTS_DISK = "/dev/vdd"
PROGRAM_TIMEOUT_S = 900


def program_names(program, directory):
    """The tests of a GoogleTest program under its filter."""
    listed = subprocess.run([directory / program.name, "--gtest_list_tests", "--gtest_filter=" + program.filter],
                            check=True, capture_output=True, text=True).stdout
    suite = ""
    for line in listed.splitlines():
        line = line.split("#")[0].rstrip()
        if line.endswith(".") and not line.startswith(" "):
            suite = line
        elif line.startswith("  "):
            yield f"{program.label}.{suite}{line.strip()}"


def check_cases(variant):
    loader = unittest.TestLoader()
    for name in variant.checks:
        yield from loader.loadTestsFromName(name)


def check_name(case):
    return re.sub(r"^test_", "", case.id())


def all_names(variant, directory):
    for program in variant.programs:
        yield from program_names(program, directory)
    for case in check_cases(variant):
        yield "checks." + check_name(case)


def cgroup_mode():
    kind = subprocess.run(["stat", "-f", "-c", "%T", "/sys/fs/cgroup"], check=True, capture_output=True, text=True)
    if kind.stdout.strip() == "cgroup2fs":
        return "unified"
    return "hybrid" if os.path.isdir("/sys/fs/cgroup/unified") else "legacy"


class Results:
    """A tar on the disk that is for it: `told`, with what the guest is, and a JUnit file for each program and for the
    checks. Whatever is missing in them is seen on the host, which knows what was asked for."""

    def __init__(self):
        self.files = {}

    def write(self, **told):
        self.files["told"] = "".join(f"{name} {value}\n" for name, value in told.items()).encode()
        with open(RESULTS_DISK, "r+b") as disk, tarfile.open(fileobj=disk, mode="w|") as tar:
            for name, content in self.files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        os.sync()


def say(verdict, name, seconds):
    print(f"lab: {seconds:6.1f} s  {verdict:<7} {name}", flush=True)


def run_program(program):
    """Its own report; empty when it wrote none."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="lab-report-", dir="/var/tmp"))
    directory.chmod(0o777)
    report = directory / "report.xml"
    place = getattr(places, program.place[0])(*program.place[1:])
    started = time.monotonic()
    try:
        ran = subprocess.run([*place, GUEST_TESTS / program.name, "--gtest_filter=" + program.filter, "--gtest_brief=1",
                              f"--gtest_output=xml:{report}"], timeout=PROGRAM_TIMEOUT_S, stdin=subprocess.DEVNULL)
        verdict = "ok" if ran.returncode == 0 else "FAILED"
    except subprocess.TimeoutExpired:
        verdict = "TIMEOUT"
    say(verdict, program.label, time.monotonic() - started)
    return report.read_bytes() if report.exists() else b""


class Checks(unittest.TestResult):
    """The checks' outcomes as JUnit test cases."""

    def __init__(self):
        super().__init__()
        self.suite = xml.Element("testsuite")

    def _add(self, name, seconds, outcome=None, text=""):
        case = xml.SubElement(self.suite, "testcase", name=name, time=f"{seconds:.2f}")
        if outcome is not None:
            xml.SubElement(case, outcome).text = printable(text)
        say(outcome or "ok", name, seconds)
        print(printable(text), end="", flush=True)

    def startTest(self, test):
        self.started = time.monotonic()
        self.outcome, self.text = None, ""

    def _note(self, error):
        self.outcome = "failure"
        self.text += told(error)

    def addFailure(self, test, error):
        self._note(error)

    def addError(self, test, error):
        if isinstance(test, unittest.TestCase):
            self._note(error)
        else:  # a class that could not be set up: none of its tests is started
            self._add(str(test), 0, "failure", told(error))

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self._note(error)

    def addSkip(self, test, reason):
        self.outcome, self.text = "skipped", reason + "\n"

    def stopTest(self, test):
        self._add(check_name(test), time.monotonic() - self.started, self.outcome, self.text)

    def xml(self):
        return xml.tostring(self.suite, encoding="utf-8")


def told(error):
    """What was raised, and the lines of the lab's own that led there."""
    kind, raised, trace = error
    frames = [each for each in traceback.extract_tb(trace) if each.filename.startswith(places.LAB)]
    lines = [f"{os.path.basename(each.filename)}:{each.lineno}: {each.line}\n" for each in frames]
    return "".join(lines + traceback.format_exception_only(kind, raised))


def printable(text):
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)


def run_in_guest():
    [name] = re.findall(r"lab\.variant=(\S+)", pathlib.Path("/proc/cmdline").read_text())
    variant = VARIANTS[name]
    results = Results()
    os.environ["TASKCELL_TEST_BIN"] = places.PROGRAMS
    os.environ["TASKCELL_TEST_MUST_RUN"] = "1"
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    say("ok", "the machine is up", float(pathlib.Path("/proc/uptime").read_text().split()[0]))
    try:
        subprocess.run([places.LAB + "/tests/support/fixture.sh", "up", places.LAB + "/build/release/bin"], check=True)
        for program in variant.programs:
            results.files[program.label + ".xml"] = run_program(program)
        checks = Checks()
        unittest.TestSuite(check_cases(variant)).run(checks)
        results.files["checks.xml"] = checks.xml()
    finally:
        results.write(kernel=os.uname().release, cgroup_mode=cgroup_mode())


def main():
    command, *arguments = sys.argv[1:]
    if command == "run":
        run_in_guest()
    elif command == "variants":
        print("\n".join(name for name, variant in VARIANTS.items() if not variant.asked))
    elif command == "names":
        print("\n".join(VARIANTS))
    elif command == "programs":
        variants = [VARIANTS[name] for name in arguments]
        print("\n".join(sorted({name for variant in variants for name in
                                (*(each.name for each in variant.programs), *variant.files)})))
    elif command == "show":
        variant = VARIANTS[arguments[0]]
        kind = "mini" if variant.mini else "counted" if variant.counted else "full"
        print(variant.kernel, variant.flavour, variant.cgroup_mode, kind, variant.policy or "none", variant.boot)
    elif command == "mini":
        for each in VARIANTS[arguments[0]].programs:
            print(each.label, each.name, each.filter)
    else:
        print("\n".join(all_names(VARIANTS[arguments[0]], pathlib.Path(arguments[1]))))


if __name__ == "__main__":
    main()

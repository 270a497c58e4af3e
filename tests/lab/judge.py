#!/usr/bin/env python3
"""Decides whether a guest's results are what was asked for, and keeps them as JUnit.

judge.py VARIANT RESULTS_DISK EXPECTED_NAMES KERNEL_RELEASE CGROUP_MODE OUT_XML

The disk must hold a tar: `told`, where the kernel and the cgroup mode, as the guest saw them itself, must be the expected
ones, and JUnit files LABEL.xml. Among these every expected name, LABEL.CLASS.NAME or LABEL.NAME, must be once, and no
other, none failed, none skipped. Exit status 0, 1, or 2 when there is no such tar.
"""

import sys
import tarfile
import xml.etree.ElementTree as xml

MAX_FILE_BYTES = 8 << 20
MAX_SHOWN = 30


def read_results(disk):
    """The files of the tar by name; none when there is no whole tar."""
    try:
        with tarfile.open(disk, "r:") as tar:
            return {entry.name: tar.extractfile(entry).read(MAX_FILE_BYTES) for entry in tar if entry.isreg()}
    except (tarfile.TarError, OSError):
        return {}


def read_cases(files):
    """All JUnit test cases under their full names, as one suite; and what could not be read."""
    suite, found = xml.Element("testsuite", name="lab"), []
    for name, content in files.items():
        label, dot, kind = name.rpartition(".")
        if kind != "xml":
            continue
        try:
            cases = list(xml.fromstring(content).iter("testcase"))
        except xml.ParseError as error:
            found.append(f"{name} is no report: {error}")
            continue
        for case in cases:
            case.set("name", ".".join(part for part in (label, case.attrib.pop("classname", ""), case.get("name")) if part))
            suite.append(case)
    return suite, found


def complaints(files, suite, expected, kernel, mode):
    """What is not as it must be; empty when all is well."""
    found = []
    told = dict(line.split(" ", 1) for line in files.get("told", b"").decode(errors="replace").splitlines() if " " in line)
    for name, want in (("kernel", kernel), ("cgroup_mode", mode)):
        if told.get(name) != want:
            found.append(f"{name} is {told.get(name)}, not {want}")
    if not expected:
        found.append("no test was asked for")
    names = [case.get("name") for case in suite]
    found += [f"not run: {name}" for name in expected if name not in names]
    found += [f"not asked for: {name}" for name in dict.fromkeys(names) if name not in expected]
    found += [f"run {names.count(name)} times: {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
    for case in suite:
        if case.get("status") == "notrun":
            found.append(f"not run: {case.get('name')}")
        for outcome in ("failure", "error", "skipped"):
            found += [f"{outcome}: {case.get('name')}\n{each.text or each.get('message') or ''}" for each in case.iter(outcome)]
    return found


def main():
    variant, disk, names, kernel, mode, out = sys.argv[1:]
    with open(names, encoding="utf-8") as file:
        expected = file.read().splitlines()
    files = read_results(disk)
    suite, found = read_cases(files)
    xml.ElementTree(suite).write(out, encoding="utf-8", xml_declaration=True)
    found += complaints(files, suite, expected, kernel, mode)
    for each in found[:MAX_SHOWN]:
        print(f"lab: {variant}: {each}")
    if len(found) > MAX_SHOWN:
        print(f"lab: {variant}: and {len(found) - MAX_SHOWN} more")
    if found:
        sys.exit(1 if files else 2)
    print(f"lab: {variant}: {len(expected)} tests run, 0 failed, 0 skipped; kernel {kernel}, cgroup mode {mode}")


if __name__ == "__main__":
    main()

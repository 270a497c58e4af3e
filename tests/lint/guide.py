#!/usr/bin/env python3
"""Every test that tests/README.md names for a sentence of the guide exists, and no sentence is without one.

usage: guide.py ROOT
"""
import os
import re
import sys

TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
LAB = re.compile(r"\bdef (test_\w+)")
SEPARATOR = re.compile(r"^[-| ]+$")


def tests_in(text, name):
    """Names of the tests a source holds: Suite.Name, or lab:test_name."""
    if name.endswith(".py"):
        return {"lab:" + test for test in LAB.findall(text)}
    return {f"{suite}.{test}" for suite, test in TEST.findall(text)}


def rows_of(text, header):
    """The rows of the table whose first line is `header`, each a list of cells."""
    lines = text.split("\n")
    rows = []
    for line in lines[lines.index(header) + 1:]:
        if not line.startswith("|"):
            break
        if not SEPARATOR.match(line):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def breaches(rows, known):
    for sentence, named in rows:
        if not named.split():
            yield f"no test: {sentence}"
        for test in named.split():
            if test not in known:
                yield f"no such test {test}: {sentence}"


def self_test():
    text = "| a | b |\n|---|---|\n| one | S.T lab:test_x |\n| two | S.U |\n| three |  |\n\n| other | x |"
    rows = rows_of(text, "| a | b |")
    assert rows == [["one", "S.T lab:test_x"], ["two", "S.U"], ["three", ""]], rows
    known = tests_in("TEST_F(S,\n  T) {", "x.cc") | tests_in("def test_x(self):", "x.py")
    assert list(breaches(rows, known)) == ["no such test S.U: two", "no test: three"]


def main():
    root = sys.argv[1]
    self_test()
    known = set()
    for folder, _, names in os.walk(os.path.join(root, "tests")):
        for name in names:
            if name.endswith((".cc", ".py")):
                with open(os.path.join(folder, name), encoding="utf-8") as source:
                    known |= tests_in(source.read(), name)
    with open(os.path.join(root, "tests", "README.md"), encoding="utf-8") as readme:
        rows = rows_of(readme.read(), "| the guide says | shown by |")
    found = list(breaches(rows, known))
    for breach in found:
        print("tests/README.md: " + breach)
    print(f"{len(rows)} sentences, {len(known)} tests, {len(found)} breaches")
    return 1 if found or not rows else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Every test that tests/README.md and taskcell-security(7) name exists, and no row of the former is without one.

usage: guide.py ROOT
"""
import os
import re
import sys

TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
LAB = re.compile(r"\bdef (test_\w+)")
HEADERS = ("| the guide says | shown by |", "| a path may | shown by |", "| the manuals say | shown by |",
           "| way out | shown by |")
IN_MANUAL = re.compile(r"^\.Li (\w+Test\.\w+)", re.M)
# The lists of the manual in which each line names its tests.
PROVEN = (".Ss What is a boundary", ".Ss What is not a boundary")
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


def untested(manual, section):
    """The lines of a section's list, each `.It`, that name no test."""
    start = manual.index(section + "\n")
    items = manual[start:manual.index("\n.El", start)].split("\n.It ")[1:]
    return [item.split("\n")[0] for item in items if not IN_MANUAL.search(item)]


def self_test():
    text = "| a | b |\n|---|---|\n| one | S.T lab:test_x |\n| two | S.U |\n| three |  |\n\n| other | x |"
    rows = rows_of(text, "| a | b |")
    assert rows == [["one", "S.T lab:test_x"], ["two", "S.U"], ["three", ""]], rows
    known = tests_in("TEST_F(S,\n  T) {", "x.cc") | tests_in("def test_x(self):", "x.py")
    manual = ".Ss X\n.Bl\n.It one\n.Li ATest.B\n.It two\ntext\n.El\n.It three\n.El"
    assert untested(manual, ".Ss X") == ["two"]
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
        text = readme.read()
    tables = [rows_of(text, header) for header in HEADERS]
    found = [breach for rows in tables for breach in breaches(rows, known)]
    for breach in found:
        print("tests/README.md: " + breach)
    with open(os.path.join(root, "man", "taskcell-security.7"), encoding="utf-8") as manual:
        text = manual.read()
    named = IN_MANUAL.findall(text)
    bare = [line for section in PROVEN for line in untested(text, section)]
    for line in bare:
        print("man/taskcell-security.7: no test: " + line)
    strangers = [test for test in named if test not in known]
    for test in strangers:
        print("man/taskcell-security.7: no such test " + test)
    print(f"{sum(map(len, tables))} sentences, {len(known)} tests, {len(found)} breaches")
    return 0 if all(tables) and named and not found and not strangers and not bare else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Every test that tests/README.md and taskcell-security(7) name exists, and no row of the former is without one;
taskcell-gateway(8) has what differs from the guide, row by row as the former has it;
taskcell(1) has each code and audit event of the sources, and no other.

usage: guide.py ROOT [--write]     --write: puts that table into the manual
"""
import os
import re
import sys
import textwrap

TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)")
LAB = re.compile(r"\bdef (test_\w+)")
HEADERS = ("| the guide says | shown by |", "| a path may | shown by |", "| the manuals say | shown by |",
           "| way out | shown by |", "| incident | shown by |")
IN_MANUAL = re.compile(r"^\.Li (\w+Test\.\w+)", re.M)
# The lists of the manual in which each line names its tests.
PROVEN = (".Ss What is a boundary", ".Ss What is not a boundary")
# The table that stands in both, and its section in the manual.
DIFFERS = "| the guide says | here | why |"
SECTION = re.compile(r"^\.Sh DIFFERENCES FROM THE GUIDE\n.*?(?=^\.Sh )", re.M | re.S)
NAMED_TESTS = re.compile(r" \((?:\w+Test\.\w+(?:, )?)+\)")
# How the sources write a code that somebody is told, and an audit event, and how taskcell(1) lists them.
CODE = re.compile(r'(?:\b(?:Coded|[Ff]ail|NotRun)\(|\bRefusal\(\w+, |\bcode = )\s*"([a-z_]+)"')
CONSTANT = re.compile(r'\bconstexpr std::string_view (k\w+) = "([a-z_]+)"')
CODED_CONSTANT = re.compile(r"\b(?:Coded|NotRun)\(\s*(k\w+)")
# By file: what else there is a code.
CODE_TABLES = {"task/answer.cc": re.compile(r'(?:\bcode == |[{,]\s*)"([a-z_]+)"'),
               "script/refusal.cc": re.compile(r'return "([a-z_]+)"')}
# What looks like one there is a reason of an event, a word of a receipt, or told to the launcher's own user.
NO_CODES = ("gateway/sweep", "gateway/egress", "launcher/native", "launcher/cell", "probe/attack")
EVENT = re.compile(r'"((?:task|script)_sandbox_[a-z_]+)"')
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


def mdoc(text):
    """Text of a cell as it stands in a manual."""
    text = NAMED_TESTS.sub("", text).replace("\\", "\\e").replace('"', "\\(dq")
    return re.sub(r"`([^`]*)`", r"\\(oq\1\\(cq", text)


def section_of(rows):
    """The manual's section about them."""
    lines = [".Sh DIFFERENCES FROM THE GUIDE",
             "Tasks and scripts do what the guide of the reference says, but for this.",
             "Each item is what that says; what is here, and why, follows.", ".Bl -tag -width Ds"]
    for guide, here, why in rows:
        lines.append(f'.It "{mdoc(guide)}"')
        for sentence in (f"Here: {mdoc(here)}.", f"Why: {mdoc(why)}."):
            wrapped = textwrap.wrap(sentence, 100, break_long_words=False, break_on_hyphens=False)
            lines += ["\\&" + line if line[0] in ".'" else line for line in wrapped]
    return "\n".join(lines + [".El", ""])


def codes_in(sources):
    """The codes of sources by their names, and the audit events."""
    events = {event for text in sources.values() for event in EVENT.findall(text)}
    sources = {name: text for name, text in sources.items() if not name.startswith(NO_CODES)}
    whole = "\n".join(sources.values())
    coded = set(CODED_CONSTANT.findall(whole))
    codes = {value for name, value in CONSTANT.findall(whole) if name in coded}
    for name, text in sources.items():
        codes |= set(CODE.findall(text))
        for end, table in CODE_TABLES.items():
            if name.endswith(end):
                codes |= set(table.findall(text))
    return codes, events


def listed_in(manual, section):
    """The items of a section's lists."""
    found = re.search(rf"^\.Sh {section}\n(.*?)(?=^\.Sh )", manual, re.M | re.S)
    items = re.findall(r"^\.It Li (.*)$", found.group(1), re.M) if found else []
    return {name for item in items for name in item.split(" , ")}


def unlisted(sources, manual):
    """What is not the same in the sources and in taskcell(1)."""
    codes, events = codes_in(sources)
    for section, there in (("CODES", codes), ("AUDIT EVENTS", events)):
        listed = listed_in(manual, section)
        yield from (f"{section}: {name} is missing" for name in sorted(there - listed))
        yield from (f"{section}: no source has {name}" for name in sorted(listed - there))


def read_sources(root):
    sources = {}
    for top in ("gateway", "launcher", "probe"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for path in (os.path.join(folder, name) for name in names if name.endswith((".cc", ".h"))):
                with open(path, encoding="utf-8") as source:
                    sources[os.path.relpath(path, root)] = source.read()
    return sources


def self_test():
    sources = {"a.cc": 'constexpr std::string_view kX = "x_y";\nreturn e.Coded(kX); Fail("f", "no");\nx = "task_sandbox_z"',
               "gateway/sweep/s.cc": 'Fail("reason")'}
    manual = ".Sh CODES\n.It Li x_y\n.It Li old\n.Sh AUDIT EVENTS\n.It Li task_sandbox_z\n.Sh END\n"
    assert list(unlisted(sources, manual)) == ["CODES: f is missing", "CODES: no source has old"]
    rows = rows_of("| the guide says | here | why |\n|---|---|---|\n| a `b` | \"c\" (ATest.B, CTest.D) | e |", DIFFERS)
    assert section_of(rows).split("\n")[4:7] == ['.It "a \\(oqb\\(cq"', "Here: \\(dqc\\(dq.", "Why: e."], section_of(rows)
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
    differing = section_of(rows_of(text, DIFFERS))
    tables = [rows_of(text, header) for header in HEADERS]
    found = [breach for rows in tables for breach in breaches(rows, known)]
    for breach in found:
        print("tests/README.md: " + breach)
    gateway = os.path.join(root, "man", "taskcell-gateway.8")
    with open(gateway, encoding="utf-8") as manual:
        text = manual.read()
    if sys.argv[2:] == ["--write"]:
        text = SECTION.sub(lambda _: differing, text)
        with open(gateway, "w", encoding="utf-8") as manual:
            manual.write(text)
    is_same = SECTION.findall(text) == [differing]
    if not is_same:
        print("man/taskcell-gateway.8: DIFFERENCES FROM THE GUIDE is not the table of tests/README.md: "
              "run tests/lint/guide.py . --write")
    with open(os.path.join(root, "man", "taskcell-security.7"), encoding="utf-8") as manual:
        text = manual.read()
    named = IN_MANUAL.findall(text)
    bare = [line for section in PROVEN for line in untested(text, section)]
    for line in bare:
        print("man/taskcell-security.7: no test: " + line)
    strangers = [test for test in named if test not in known]
    for test in strangers:
        print("man/taskcell-security.7: no such test " + test)
    with open(os.path.join(root, "man", "taskcell.1"), encoding="utf-8") as manual:
        uneven = list(unlisted(read_sources(root), manual.read()))
    for line in uneven:
        print("man/taskcell.1: " + line)
    print(f"{sum(map(len, tables))} sentences, {len(known)} tests, {len(found)} breaches")
    return 0 if all(tables) and named and not found and not strangers and not bare and not uneven and is_same else 1


if __name__ == "__main__":
    sys.exit(main())

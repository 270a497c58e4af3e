#!/usr/bin/env python3
"""Every `taskcell-probe COMMAND --option` that a message of ours tells a person to run is one that the program has.

usage: commands.py SOURCE_ROOT PROBE
"""
import os
import re
import sys

from options import commands_in_help, help_of, options_in_help

TOPS = ["seccomp", "launcher", "probe", "gateway"]
TOKENS = re.compile(r"""(?P<text>"(?:\\.|[^"\\\n])*")|//[^\n]*|'(?:\\.|[^'\\\n])'""")
NAMED = re.compile(r"taskcell-probe ([a-z][a-z-]*)")
OPTIONS = re.compile(r"--([a-z][a-z-]+)")
ENDS = re.compile(r"[;()\n]")


def texts(source):
    """The string literals of a source; adjacent ones are one text, as to the compiler."""
    found, end = [], None
    for token in TOKENS.finditer(source):
        if not token["text"]:
            continue
        if end is not None and not source[end:token.start()].strip():
            found[-1] += token["text"][1:-1]
        else:
            found.append(token["text"][1:-1])
        end = token.end()
    return found


def commands_named(source):
    """Pairs of a command that is told to be run and its options, as far as they stand in one literal."""
    found = []
    for text in texts(source):
        for match in NAMED.finditer(text):
            rest = ENDS.split(text[match.end():])[0]
            found.append((match.group(1), OPTIONS.findall(rest)))
    return found


def self_test():
    assert commands_named('x("run taskcell-probe " "fly --high; --low"); // "taskcell-probe walk"') == [("fly", ["high"])]
    assert commands_named("""char c = '"'; f("unix:///x", "taskcell-probe hop");""") == [("hop", [])]
    assert commands_named('"taskcell-probe --json", "taskcell-probe: it failed"') == []


def main():
    root, probe = sys.argv[1:3]
    self_test()
    if not os.path.exists(probe):
        print("Skipped: taskcell-probe is not built")
        return 77
    known = {name: options_in_help(help_of(probe, name)) for name in commands_in_help(help_of(probe))}
    named = status = 0
    for top in TOPS:
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in files:
                if not name.endswith((".cc", ".h")):
                    continue
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as source:
                    for command, options in commands_named(source.read()):
                        named += 1
                        unknown = [each for each in options if each not in known.get(command, ())]
                        if command not in known or unknown:
                            print(f"{os.path.relpath(path, root)}: taskcell-probe has no '{command} {' '.join(unknown)}'")
                            status = 1
    if named == 0:
        print("no message names a command: what is this test looking at?")
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Every option a program's --help names stands in its manual page, and the other way round.

usage: options.py MAN_FOLDER BIN_FOLDER
A program that was not built, or a page that is not written, is named and passed over; none at all is a failure.
"""
import os
import re
import subprocess
import sys

PAGES = ["taskcell.1", "taskcell-launch.1", "taskcell-probe.1", "taskcell-gateway.8"]
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]+)")


def options_in_help(text):
    return set(OPTION.findall(text))


def commands_in_help(text):
    """Names in the list below a line 'Subcommands:' or 'Commands:'."""
    match = re.search(r"^(?:Subcommands|Commands):\n((?:[ \t]+\S.*\n?)+)", text, re.IGNORECASE | re.MULTILINE)
    if not match:
        return []
    indents = [re.match(r"([ \t]+)([a-z][a-z-]*)", line) for line in match.group(1).splitlines()]
    first = len(indents[0].group(1)) if indents and indents[0] else 0
    return [each.group(2) for each in indents if each and len(each.group(1)) == first]


def options_in_page(text):
    """Long options of an mdoc page: Fl followed by a word that begins with '-'."""
    found = set()
    for line in text.splitlines():
        if line.startswith('.\\"'):
            continue
        found |= set(re.findall(r"\bFl (?:\\&)?(?:-|\\-)([a-z][a-z0-9-]+)", line.replace("\\-", "-")))
    return found


def help_of(program, *words):
    done = subprocess.run([program, *words, "--help"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=20, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{program} {' '.join(words)} --help: exit status {done.returncode}")
    return done.stdout.decode()


def whole_help(program):
    text = help_of(program)
    return text + "".join(help_of(program, command) for command in commands_in_help(text))


def differences(help_text, page_text):
    in_help = options_in_help(help_text)
    in_page = options_in_page(page_text)
    always = {"help", "version"}  # may stand in either alone
    return sorted(in_help - in_page - always), sorted(in_page - in_help - always)


def self_test():
    page = '.It Fl -memory Ar SIZE\n.Fl -net Cm none\n.\\" Fl -not-this\n'
    assert differences("  --memory SIZE\n  --net MODE, --help\n", page) == ([], [])
    assert differences("  --memory SIZE --planted\n", page) == (["planted"], ["net"])
    assert commands_in_help("x\n\nSubcommands:\n  run   runs\n  doctor\n        more\nOptions:\n  -h\n") == ["run", "doctor"]


def main():
    man, bin_folder = sys.argv[1:3]
    self_test()
    compared = 0
    status = 0
    for page in PAGES:
        path, program = os.path.join(man, page), os.path.join(bin_folder, page.rsplit(".", 1)[0])
        if not os.path.exists(path) or not os.path.exists(program):
            print(f"{page}: passed over, no {'page' if not os.path.exists(path) else 'program'}")
            continue
        with open(path, encoding="utf-8") as source:
            missing, stale = differences(whole_help(program), source.read())
        compared += 1
        for option in missing:
            print(f"{page}: --{option} is in --help, not in the page")
        for option in stale:
            print(f"{page}: --{option} is in the page, not in --help")
        status |= bool(missing or stale)
    if compared == 0:
        print("Skipped: neither pages nor programs yet")
        return 77
    return status


if __name__ == "__main__":
    sys.exit(main())

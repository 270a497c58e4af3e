#!/usr/bin/env python3
"""Each shell's completion offers exactly the commands, long options and kinds of task that taskcell --help names, and
the units say what a gateway needs of its service manager.

usage: completion.py SOURCE_ROOT TASKCELL
"""
import os
import re
import sys

from options import commands_in_help, help_of, options_in_help

WORD = re.compile(r"[a-z][a-z0-9_-]*")
NEEDED = ["Type=notify", "WatchdogSec=60", "Delegate=yes", "KillMode=mixed", "Restart=on-failure"]


def offered_in_bash(text):
    commands = re.search(r'words="([^"]*) --help --version"', text).group(1).split()
    return set(commands), set(re.findall(r"--([a-z-]+)", text)), set(re.search(r'--path\) words="([^"]*)"', text).group(1).split())


def offered_in_zsh(text):
    return (set(re.findall(r"^    '([a-z-]+):", text, re.M)), set(re.findall(r"'--([a-z-]+)", text)),
            set(re.search(r":kind:\(([^)]*)\)", text).group(1).split()))


def offered_in_fish(text):
    return (set(re.findall(r"__fish_use_subcommand -a ([a-z-]+)", text)), set(re.findall(r" -l ([a-z-]+)", text)),
            set(re.search(r"-l path -r -a '([^']*)'", text).group(1).split()))


SHELLS = {"bash": offered_in_bash, "zsh": offered_in_zsh, "fish": offered_in_fish}


def known_to(taskcell):
    commands = commands_in_help(help_of(taskcell))
    options = options_in_help(help_of(taskcell))
    for command in commands:
        options |= options_in_help(help_of(taskcell, command))
    options |= options_in_help(help_of(taskcell, "config", "check"))
    kinds = re.search(r"--path TEXT REQUIRED\s+What starts it:(.*?)(?=\n\s+--|\Z)", help_of(taskcell, "submit"), re.S).group(1)
    return set(commands), options, set(WORD.findall(kinds))


def main():
    root, taskcell = sys.argv[1:3]
    if not os.path.exists(taskcell):
        print("Skipped: taskcell is not built")
        return 77
    status = 0
    data = os.path.join(root, "gateway", "data")
    known = known_to(taskcell)
    assert all(known), known
    for shell, offered_in in SHELLS.items():
        with open(os.path.join(data, "completion", "taskcell." + shell), encoding="utf-8") as source:
            offered = offered_in(source.read())
        for what, theirs, ours in zip(("command", "option", "kind"), offered, known):
            for word in sorted(theirs ^ ours):
                print(f"taskcell.{shell}: {what} {word} is {'not offered' if word in ours else 'not in --help'}")
                status = 1
    for unit in ("system", "user"):
        with open(os.path.join(data, "systemd", f"taskcell-gateway.{unit}.service.in"), encoding="utf-8") as source:
            lines = source.read().splitlines()
        for need in NEEDED:
            if need not in lines:
                print(f"taskcell-gateway.{unit}.service: lacks {need}")
                status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Rules of the source tree that no compiler checks. Prints one line for each breach; exit status 1 if there is any.

usage: lint.py ROOT
"""
import os
import re
import sys
from collections import namedtuple

Breach = namedtuple("Breach", "path line rule text")

# Who may include whom: a room may include itself and the rooms of its row, nothing else.
GROUND = ["seccomp", "launcher/base", "launcher/sys"]
CELL = GROUND + ["launcher/cell"]
LAUNCHER = CELL + ["launcher/cgroup", "launcher/gate", "launcher/mounts"]
BUILDERS = LAUNCHER + ["launcher/native", "launcher/init", "launcher/host"]
# Each of probe's folders may use those before it.
PROBE_FOLDERS = ["probe/tar", "probe/engine", "probe/cells", "probe/live", "probe/attack", "probe/facts", "probe/rules",
                 "probe/print", "probe/delegate", "probe/mounts", "probe/cli"]
PROBE = BUILDERS + PROBE_FOLDERS
GATEWAY_GROUND = ["gateway/config", "gateway/runtimes", "gateway/ledger"]
GATEWAY_MIDDLE = ["gateway/egress", "gateway/sweep", "gateway/doctor"]
ROOMS = {
    "seccomp": [],
    "launcher/base": [],
    "launcher/sys": ["seccomp", "launcher/base"],
    "launcher/cell": GROUND,
    "launcher/cgroup": CELL,
    "launcher/gate": CELL,
    "launcher/mounts": CELL,
    "launcher/init": LAUNCHER,
    "launcher/native": LAUNCHER,
    "launcher/host": LAUNCHER + ["launcher/init"],
    "launcher": BUILDERS,  # main.cc
    **{room: BUILDERS + PROBE_FOLDERS[:at] for at, room in enumerate(PROBE_FOLDERS)},
    "probe": PROBE,  # main.cc
    **{room: PROBE for room in GATEWAY_GROUND},
    **{room: PROBE + GATEWAY_GROUND for room in GATEWAY_MIDDLE},
    "gateway/task": PROBE + GATEWAY_GROUND + GATEWAY_MIDDLE,
    "gateway/script": PROBE + GATEWAY_GROUND + GATEWAY_MIDDLE + ["gateway/task"],
    "gateway/operator": PROBE + GATEWAY_GROUND + GATEWAY_MIDDLE + ["gateway/task"],
    "gateway/cli": PROBE + GATEWAY_GROUND + GATEWAY_MIDDLE + ["gateway/task", "gateway/script", "gateway/operator"],
    "gateway/intake": PROBE + GATEWAY_GROUND + GATEWAY_MIDDLE + ["gateway/task"],
    "gateway/api": PROBE + GATEWAY_GROUND + GATEWAY_MIDDLE + ["gateway/task", "gateway/script", "gateway/intake"],
}
ROOMS["gateway"] = ROOMS["gateway/api"] + ["gateway/api", "gateway/cli"]  # main.cc

# Calls that make descriptors, and the flag that must stand among their arguments.
CLOEXEC = {
    "socket": "SOCK_CLOEXEC",
    "socketpair": "SOCK_CLOEXEC",
    "accept4": "SOCK_CLOEXEC",
    "recvmsg": "MSG_CMSG_CLOEXEC",
    "recvmmsg": "MSG_CMSG_CLOEXEC",
    "pipe2": "O_CLOEXEC",
    "inotify_init1": "IN_CLOEXEC",
    "eventfd": "EFD_CLOEXEC",
    "timerfd_create": "TFD_CLOEXEC",
    "signalfd": "SFD_CLOEXEC",
}
# Calls that cannot take the flag at all.
NEVER = {"accept": "accept4", "dup": "fcntl(F_DUPFD_CLOEXEC)", "pipe": "pipe2", "creat": "openat2",
         "epoll_create": "epoll_create1", "inotify_init": "inotify_init1"}

SLOW_HEADERS = re.compile(r"^(nlohmann/(?!json_fwd)|toml\+\+|CLI/)")
# Who writes to standard error without a message: a progress line, and what a script wrote there itself.
RAW_STANDARD_ERROR = ("probe/cli/mounts_command.cc", "gateway/cli/script_command.cc", "gateway/cli/pull_progress.cc")
MAX_LINES = 400
SOURCE_TOPS = ["seccomp", "launcher", "probe", "gateway"]
# What a test names that starts an AI's program or a stand-in for one, and how it shows that it left the host's network.
AI_PROGRAMS = re.compile(r'\bclis/bin\b|\bcli-root\b|\bMAKE_SMALL_ROOT\b|\bAGY_PATH\b|"bin/(claude|codex|grok|agy)"|Program\("taskcell"\),\s*"run"')
OWN_NETWORK = re.compile(r"\bTASKCELL_ENTER_OWN_NETWORK\b|/(task|trap|small_root|real_task|script|gateway|host)_fixture\.h\"")
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]')


ONLY_MAIN = ("launcher", "probe", "gateway")  # their folders are rooms of their own


def room_of(path):
    """The room of a source file, or None where it is in none."""
    folder = os.path.dirname(path)
    if folder in ONLY_MAIN:
        return folder
    while folder and (folder not in ROOMS or folder in ONLY_MAIN):
        folder = os.path.dirname(folder)
    return folder or None


def without_comments_and_strings(text):
    """`text` with comments and the insides of string and character literals blanked, line numbers kept."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^\s()\\]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])*'", re.DOTALL)

    def blank(match):
        kept = match.group(0)
        if re.search(r"#\s*include\s*$", text[text.rfind("\n", 0, match.start()) + 1:match.start()]):
            return kept
        return re.sub(r"[^\n]", " ", kept)

    return pattern.sub(blank, text)


def arguments_from(code, start):
    """The text between the parenthesis at `start` and its partner."""
    depth = 0
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return code[start + 1:at]
    return code[start + 1:]


def check_includes(path, code):
    room = room_of(path)
    if room is None:
        yield Breach(path, 1, "room", "stands in no room: the rooms are " + ", ".join(sorted(ROOMS)))
        return
    for number, line in enumerate(code.split("\n"), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(1)
        if SLOW_HEADERS.match(header) and path.endswith(".h"):
            yield Breach(path, number, "slow-header", f"{header} belongs in a .cc file")
        if header.startswith("tests/"):
            yield Breach(path, number, "include-direction", f"{room} may not use tests ({header})")
        if header.split("/")[0] not in SOURCE_TOPS:
            continue
        target = room_of(header)
        if target != room and target not in ROOMS[room]:
            yield Breach(path, number, "include-direction", f"{room} may not use {target} ({header})")


def line_at(code, offset):
    return code.count("\n", 0, offset) + 1


def is_declaration(code, match):
    """True for `Type name(...)`: the word before the name is a type, not a keyword an expression may follow."""
    before = re.search(r"(\w+)[>&*]*\s+$", code[max(0, match.start() - 80):match.start()])
    return before is not None and not match.group(0).startswith("::") and before.group(1) not in (
        "return", "else", "do", "case", "throw", "not", "and", "or", "co_return")


def check_calls(path, code):
    for match in re.finditer(r"(?<![\w.>:])(?:::)?(\w+)\s*\(", code):
        name = match.group(1)
        if is_declaration(code, match):
            continue
        line = line_at(code, match.start())
        if name in NEVER:
            yield Breach(path, line, "cloexec", f"{name}() cannot close on exec: use {NEVER[name]}")
        # Placing a job's own 0, 1 and 2 is what these are for.
        if name in ("dup2", "dup3") and room_of(path) != "launcher/sys":
            yield Breach(path, line, "cloexec", f"{name}() outside launcher/sys: it may stay open over exec")
        if name in CLOEXEC and CLOEXEC[name] not in arguments_from(code, match.end() - 1):
            yield Breach(path, line, "cloexec", f"{name}() without {CLOEXEC[name]}")


def check_words(path, code):
    if room_of(path) != "launcher/sys":
        for match in re.finditer(r"\berrno\b", code):
            yield Breach(path, line_at(code, match.start()), "errno", "errno is read in launcher/sys only")
    if room_of(path) != "launcher/sys" and path not in RAW_STANDARD_ERROR:
        for match in re.finditer(r"\bWriteAll\((?:STDERR_FILENO|2)\b|\bstd::cerr\b", code):
            yield Breach(path, line_at(code, match.start()), "message", "messages go through sys::PrintMessage, which keeps terminals safe")
    for match in re.finditer(r"\bnew\s+[\w:]+\s*\([^;]*\bTRY\(", code):
        yield Breach(path, line_at(code, match.start()), "leak", "TRY returns out of `new`, whose memory is then lost: take the value first")
    if path.split("/")[0] in ("seccomp", "launcher"):
        for match in re.finditer(r"\bstd::filesystem\b|#\s*include\s*<filesystem>", code):
            yield Breach(path, line_at(code, match.start()), "filesystem", "paths here go through launcher/sys and descriptors")


def check_length(path, text):
    lines = text.count("\n")
    if lines > MAX_LINES:
        yield Breach(path, lines, "length", f"{lines} lines: split it (at most {MAX_LINES})")


def check_network(path, text):
    found = AI_PROGRAMS.search(text)
    if found and not OWN_NETWORK.search(text):
        yield Breach(path, line_at(text, found.start()), "network",
                     "what may start an AI's program must enter a network of its own (TASKCELL_ENTER_OWN_NETWORK)")


def check_file(path, text):
    code = without_comments_and_strings(text)
    for check in (check_includes, check_calls, check_words):
        yield from check(path, code)
    yield from check_length(path, text)


def rooms_named(words, top):
    """The rooms that a cell of the code map names in a row of `top`: "cli" in its own top if that is one there."""
    if "anything" in words:
        return []
    found = []
    for name in re.findall(r"[a-z]+", words):
        own = top + "/" + name
        found += [own] if own in ROOMS else [
            room for room in ROOMS if room == name or room.endswith("/" + name) or room.startswith(name + "/")]
    return found


def code_map_rows(text):
    """(line, rooms, last column) of each row of README's code map that is about rooms."""
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"\| `([a-z/ ]+)` \|.*\| ([^|]*) \|$", line)
        if not match:
            continue
        first, *siblings = match.group(1).rstrip("/").split()
        folder = first.rstrip("/").rpartition("/")[0]
        rooms = [first.rstrip("/")] + [folder + "/" + sibling for sibling in siblings]
        if any(room in ROOMS for room in rooms):
            yield number, rooms, match.group(2)


def check_code_map(text, present):
    """README's table of rooms: all that are `present`, each below those it may use, none used that it says it may not."""
    rows = [(number, room, last) for number, rooms, last in code_map_rows(text) for room in rooms]
    order = [room for _, room, _ in rows]
    for room in sorted(present - set(order) - set(ONLY_MAIN)):
        yield Breach("README.md", 1, "code-map", f"{room} is not in the table of rooms")
    for at, (number, room, last) in enumerate(rows):
        for used in ROOMS.get(room, []):
            if used in order[at + 1:]:
                yield Breach("README.md", number, "code-map", f"{room} may use {used}, which stands below it")
        for forbidden in rooms_named(last, room.split("/")[0]):
            if forbidden in ROOMS.get(room, []):
                yield Breach("README.md", number, "code-map", f"{room} may use {forbidden}")


def source_files(root, tops=SOURCE_TOPS):
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".h", ".cc")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def lint(root):
    """All breaches below `root`, sorted, and how many files were read."""
    breaches = []
    files = sorted(source_files(root))
    for path in files:
        with open(os.path.join(root, path), encoding="utf-8") as source:
            breaches += check_file(path, source.read())
    for path in source_files(root, ["tests"]):
        with open(os.path.join(root, path), encoding="utf-8") as source:
            breaches += check_network(path, source.read())
    readme = os.path.join(root, "README.md")
    if os.path.exists(readme):
        with open(readme, encoding="utf-8") as source:
            breaches += check_code_map(source.read(), {room_of(path) for path in files} - {None})
    return sorted(breaches), len(files)


def main():
    breaches, files = lint(sys.argv[1])
    for breach in breaches:
        print(f"{breach.path}:{breach.line}: [{breach.rule}] {breach.text}")
    print(f"{files} files, {len(breaches)} breaches")
    return 1 if breaches or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

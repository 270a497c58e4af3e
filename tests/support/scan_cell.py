#!/usr/bin/env python3
"""Searches a running cell from outside, as root: the environment, memory and files of its processes.

scan_cell.py --name PROGRAM --uid UID --sub-uid FIRST COUNT --find LABEL=TEXT... [--wait SECONDS]

Waits for a process of that name in another pid namespace with one of those uids, looks at it and at
every process of its pid namespace, and prints one JSON object:
{"processes": [name...], "interfaces": [name...], "memory_bytes": N, "files": N,
 "found": {LABEL: [place...]}}, where a place is "environ of NAME", "memory of NAME" or a path. Texts are
given by way of the environment (LABEL is the name of a variable), so that they are in no command line.
"""

import argparse
import array
import json
import os
import sys
import time

PAGE = os.sysconf("SC_PAGE_SIZE")
CHUNK = 8 << 20
MAX_MEMORY = 4 << 30
MAX_FILE = 64 << 20
MAX_FILES = 20000
FILE_PLACES = ("tmp", "workspace", "agent", "run", "etc", "dev/shm")


def read(path, limit=1 << 20):
    with open(path, "rb") as file:
        return file.read(limit)


def name_of(pid):
    return read(f"/proc/{pid}/comm").decode(errors="replace").strip()


def uid_of(pid):
    for line in read(f"/proc/{pid}/status").decode(errors="replace").splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[1])
    return -1


def namespace(pid):
    return os.readlink(f"/proc/{pid}/ns/pid")


def all_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def find_cell(options):
    own = namespace("self")
    first, count = options.sub_uid
    for pid in all_pids():
        try:
            uid = uid_of(pid)
            if name_of(pid).startswith(options.name) and namespace(pid) != own and (
                    uid == options.uid or first <= uid < first + count):
                return namespace(pid)
        except OSError:
            pass
    return None


def present_pages(pid, start, end):
    """Runs of (start, end) that are in memory: the rest was never touched."""
    with open(f"/proc/{pid}/pagemap", "rb") as file:
        file.seek(start // PAGE * 8)
        flags = array.array("Q")
        flags.frombytes(file.read((end - start) // PAGE * 8))
    run = None
    for number, flag in enumerate(flags):
        if flag >> 62:
            run = number if run is None else run
        elif run is not None:
            yield start + run * PAGE, start + number * PAGE
            run = None
    if run is not None:
        yield start + run * PAGE, start + len(flags) * PAGE


def search_memory(pid, wanted, found, report):
    longest = max(len(text) for text in wanted.values())
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in read(f"/proc/{pid}/maps", 8 << 20).decode(errors="replace").splitlines():
            span, rights = line.split()[:2]
            # What can be written, and heap or stack: a program's own text holds no secret of this run.
            if not rights.startswith("rw"):
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            for first, last in present_pages(pid, start, end):
                tail = b""
                while first < last and report["memory_bytes"] < MAX_MEMORY:
                    memory.seek(first)
                    data = memory.read(min(CHUNK, last - first))
                    if not data:
                        break
                    for label, text in wanted.items():
                        if text in tail + data:
                            found[label].add(f"memory of {name_of(pid)}")
                    tail = data[-longest:]
                    first += len(data)
                    report["memory_bytes"] += len(data)


def search_files(pid, wanted, found, report):
    root = f"/proc/{pid}/root"
    for place in FILE_PLACES:
        for folder, _, names in os.walk(f"{root}/{place}"):
            for name in names:
                path = os.path.join(folder, name)
                if report["files"] >= MAX_FILES or not os.path.isfile(path) or os.path.islink(path):
                    continue
                report["files"] += 1
                data = read(path, MAX_FILE)
                for label, text in wanted.items():
                    if text in data:
                        found[label].add(path[len(root):])


def scan(space, wanted):
    found = {label: set() for label in wanted}
    report = {"processes": [], "interfaces": [], "memory_bytes": 0, "files": 0}
    for pid in all_pids():
        try:
            if namespace(pid) != space:
                continue
            name = name_of(pid)
            environ = read(f"/proc/{pid}/environ")
            for label, text in wanted.items():
                if text in environ:
                    found[label].add(f"environ of {name}")
            search_memory(pid, wanted, found, report)
            if not report["interfaces"]:
                lines = read(f"/proc/{pid}/net/dev").decode().splitlines()[2:]
                report["interfaces"] = sorted(line.split(":")[0].strip() for line in lines)
                search_files(pid, wanted, found, report)
            report["processes"].append(name)
        except OSError:
            pass  # it ended meanwhile
    report["found"] = {label: sorted(places) for label, places in found.items()}
    return report


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--uid", type=int, required=True)
    parser.add_argument("--sub-uid", type=int, nargs=2, required=True)
    parser.add_argument("--find", nargs="+", required=True)
    parser.add_argument("--wait", type=float, default=60)
    options = parser.parse_args()
    wanted = {label: os.environ[label].encode() for label in options.find}
    end = time.monotonic() + options.wait
    while time.monotonic() < end:
        space = find_cell(options)
        if space:
            print(json.dumps(scan(space, wanted)))
            return 0
        time.sleep(0.02)
    print("scan_cell.py: no such process came", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""taskcell-probe attack: every attack is contained, and shown to work outside but for those that the variant lacks the
means for."""

import json
import pathlib
import re
import subprocess
import time

import places
import test_engines
from case import PROBE, PROBE_TRIES, Case, was_too_busy

MODULES = ("loop", "fuse", "tun", "dm_mod", "overlay", "af_alg", "vsock_loopback")
SUITE_S = 1200
HOG = "processor-hog"


def machine():
    """The variant; `attacks` is the same machine as `unified`."""
    [name] = re.findall(r"lab\.variant=(\S+)", pathlib.Path("/proc/cmdline").read_text())
    return "unified" if name == "attacks" else name


def lacking():
    """The attacks that lacking.txt says this machine has not the means for."""
    lines = pathlib.Path(__file__).with_name("lacking.txt").read_text().splitlines()
    return {line.split()[1] for line in lines if line.startswith(machine() + " ")}


def all_attacks(*topics):
    """The names of the attacks of these topics or names; without one, of all."""
    listed = subprocess.run([PROBE, "attack", "--list"], check=True, capture_output=True, text=True).stdout
    rows = [line.split() for line in listed.splitlines()[1:]]
    return {name for name, topic, *_ in rows if not topics or topic in topics or name in topics}


def shown(rows):
    """The names of those that were shown to work outside and to be contained."""
    return {name for name, row in rows.items() if row["verdict"] == "contained"}


def take_root(rows):
    """The names of those that only root can show, or lay out."""
    return {name for name, row in rows.items() if row["control"] in ("root", "group") or row["outside"]["name"] == "ENOENT"}


class Attacked(Case):
    def setUp(self):
        super().setUp()
        for module in MODULES:
            subprocess.run(["modprobe", "-q", module], check=False)
        self.write_for_the_test("/proc/sys/kernel/perf_event_paranoid", "2")
        self.write_for_the_test("/proc/sys/vm/nr_hugepages", "64")

    def attack(self, place, *topics, engine="native"):
        """The same as attack_once; a limit of the processor is asked for again while the machine is too busy to show it."""
        rows = self.attack_once(place, *topics, engine=engine)
        for _ in range(PROBE_TRIES):
            if rows.get(HOG, {"verdict": "contained"})["verdict"] == "contained":
                break
            rows |= self.attack_once(place, HOG, engine=engine)
        return rows

    def attack_once(self, place, *topics, engine="native"):
        """The report's rows by name: each attack once, none of them an escape, none that failed in another way than a
        cell's."""
        started = time.monotonic()
        for _ in range(PROBE_TRIES):
            ran = self.run_in(place, PROBE, "attack", "--json", "--engine", engine, *topics, timeout=SUITE_S)
            if not was_too_busy(ran.stdout):
                break
        self.assertTrue(ran.stdout.startswith("{"), ran.stderr)
        print(f"lab: attacks on {engine} {' '.join(topics)}: {time.monotonic() - started:.1f} s")
        report = json.loads(ran.stdout)
        self.assertEqual((report["refusal"], report["differences"]), (None, []))
        rows = {row["attack"]: row for row in report["attacks"]}
        self.assertEqual((len(report["attacks"]), set(rows)), (len(rows), all_attacks(*topics)))
        wrong = [row for row in rows.values() if row["verdict"] == "escaped" or
                 row["verdict"] != "contained" and row["outside"]["result"] == 0]
        self.assertEqual(wrong, [])
        return rows


class QuickTopics(Attacked):
    """As root, what no time passes with: without what uses up memory, processors, processes and deadlines."""

    TOPICS = ("cgroups", "devices", "files", "init", "ipc", "kernel", "mounts", "namespaces", "network", "privilege", "proc",
              "processes", "roots")

    def test_no_attack_of_these_topics_escapes(self):
        rows = self.attack(places.root(), *self.TOPICS)
        self.assertGreater(len(shown(rows)), len(rows) * 4 // 5)  # the rest takes a user, or what the machine lacks


class WholeSuite(Attacked):
    # What is not the same in a cell that an ordinary user makes.
    OF_USERS = ("cgroups", "init", "load", "memory", "mounts", "namespaces", "privilege", "proc", "processes")

    def test_every_attack_is_contained(self):
        """As root, who can show most, and as an ordinary user, whose cells are made in another way."""
        by_root = self.attack(places.root())
        by_user = self.attack(places.handed("taskcell-test"), *self.OF_USERS)
        self.assertEqual(all_attacks() - shown(by_root) - shown(by_user), lacking())


class EngineAttacks(Attacked, test_engines.Engines):
    """The same on each container engine: what depends on how it makes a container."""

    TOPICS = ("cgroups", "privilege")

    def assert_engine(self, place, socket_path):
        test_engines.Engine(socket_path).wait_until_it_answers()
        rows = self.attack(place, *self.TOPICS, engine="unix://" + socket_path)
        self.assertEqual(set(rows) - shown(rows) - take_root(rows) - lacking(), set())
        self.assert_nothing_left()

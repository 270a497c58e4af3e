"""taskcell-probe attack on machines that have what a host may lack: every attack is contained, and those named in
attacks.txt for this variant are shown to work outside."""

import json
import pathlib
import re
import subprocess

import places
from case import PROBE, Case

MODULES = ("loop", "fuse", "tun", "dm_mod", "overlay", "af_alg", "vsock_loopback")


def shown_here():
    [variant] = re.findall(r"lab\.variant=(\S+)", pathlib.Path("/proc/cmdline").read_text())
    lines = pathlib.Path(__file__).with_name("attacks.txt").read_text().splitlines()
    return [line.split()[1] for line in lines if line.startswith(variant + " ")]


class _Attacked(Case):
    def setUp(self):
        super().setUp()
        for module in MODULES:
            subprocess.run(["modprobe", "-q", module], check=False)
        self.write_for_the_test("/proc/sys/kernel/perf_event_paranoid", "2")
        self.write_for_the_test("/proc/sys/vm/nr_hugepages", "64")

    def attack(self, *names):
        """The report's rows by name, after none of them was an escape and each of `shown_here` was shown."""
        ran = self.run_in(places.root(), PROBE, "attack", "--json", *names)
        self.assertTrue(ran.stdout.startswith("{"), ran.stderr)
        report = json.loads(ran.stdout)
        self.assertEqual((report["refusal"], report["differences"]), (None, []))
        rows = {row["attack"]: row for row in report["attacks"]}
        wrong = [row for row in rows.values() if row["verdict"] == "escaped" or
                 row["verdict"] != "contained" and row["outside"]["result"] == 0]
        self.assertEqual(wrong, [])
        self.assertEqual([rows[name] for name in shown_here() if rows[name]["verdict"] != "contained"], [])
        return rows


class NamedAttacks(_Attacked):
    def test_what_a_host_may_lack_is_shown_and_contained(self):
        self.assertEqual(sorted(self.attack(*shown_here())), sorted(shown_here()))

"""--io-weight on cgroup v2: written where io is handed on and a disk shares its time by weight, in force there, and refused
elsewhere."""

import os
import pathlib
import subprocess
import time

import places
from case import LAUNCH, LIMITS, Case

CGROUPS = pathlib.Path("/sys/fs/cgroup")
COST = CGROUPS / "io.cost.qos"  # only the root has it, and only a kernel that is built with io.cost
DISKS = pathlib.Path("/sys/kernel/config/nullb")
DISK = "weighed"
MEDIUM = "/mnt/" + DISK

# Reads blocks of a disk at random, past every cache, from one moment to another; how many it got.
READ = """
import mmap, os, random, sys, time
block = 16384
fd = os.open('/data/file', os.O_RDONLY | os.O_DIRECT)
blocks = os.fstat(fd).st_size // block
buffer = [mmap.mmap(-1, block)]
start, end = float(sys.argv[1]), float(sys.argv[2])
assert time.time() < start, 'late'
time.sleep(start - time.time())
done = 0
while time.time() < end:
  done += os.preadv(fd, buffer, random.randrange(blocks) * block) == block
print(done)
"""
CELL_START_S = 15
READ_S = 12


def modprobe(*words):
    subprocess.run(["modprobe", *words], check=True)


class WithADisk(Case):
    def setUp(self):
        super().setUp()
        modprobe("bfq")
        self.make_disk()

    def make_disk(self):
        """A disk in memory that does one request at a time, each in 4 ms: what a processor takes is nothing beside it."""
        modprobe("null_blk", "nr_devices=0")
        subprocess.run(["modprobe", "-q", "configfs"], check=False)
        if not DISKS.is_dir():
            subprocess.run(["mount", "-t", "configfs", "configfs", DISKS.parent], check=True)
        disk = DISKS / DISK
        disk.mkdir()
        self.addCleanup(disk.rmdir)
        for name, value in (("size", 64), ("memory_backed", 1), ("submit_queues", 1), ("hw_queue_depth", 1), ("irqmode", 2),
                            ("completion_nsec", 4_000_000), ("power", 1)):
            (disk / name).write_text(str(value))
        self.addCleanup((disk / "power").write_text, "0")
        named = pathlib.Path("/sys/block", DISK).exists()  # by the directory, or as older kernels do
        self.device = DISK if named else f"nullb{(disk / 'index').read_text().strip()}"
        self.scheduler = pathlib.Path(f"/sys/block/{self.device}/queue/scheduler")


class IoWeight(WithADisk):
    def weigh(self, place, *options):
        """What a cell's cgroup holds in its files of weights while the cell runs; the launcher's refusal instead."""
        running = subprocess.Popen([*place, LAUNCH, *LIMITS, *options, "--", "sh", "-c", "echo up; cat >/dev/null"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        seen = {}
        if running.stdout.readline() == "up\n":
            for file in CGROUPS.rglob("run-" + "[0-9a-f]" * 32 + "/io.*weight"):
                seen[file.name] = file.read_text().split()[1]
        _, errors = running.communicate()
        self.assertEqual(running.returncode, 0 if seen else 125, errors)
        return seen or errors

    def test_no_disk_shares_by_weight(self):
        self.assertNotIn("[bfq]", "".join(p.read_text() for p in pathlib.Path("/sys/block").glob("*/queue/scheduler")))
        refused = self.weigh(places.handed("taskcell-test"), "--io-weight=50")
        self.assertIn("resource_limits_unenforced", refused)
        self.assertIn("queue/scheduler", refused)

    def test_bfq(self):
        self.scheduler.write_text("bfq")
        for place in (places.handed("taskcell-test"), places.unit("alice", "Delegate=yes")):
            seen = self.weigh(place, "--io-weight=50")
            self.assertEqual(seen["io.bfq.weight"], "50")
            self.assertEqual(set(seen.values()), {"50"})
        self.assertEqual(self.weigh(places.handed("taskcell-test")).get("io.bfq.weight"), "100")
        # Without a processor's limit, but with the io that is handed on.
        self.assertEqual(self.weigh(places.scope("dave"), "--allow-missing=cpu", "--io-weight=7")["io.bfq.weight"], "7")

    def test_cost(self):
        number = pathlib.Path(f"/sys/block/{self.device}/dev").read_text().strip()
        if not COST.exists():
            self.assertEqual(list(CGROUPS.glob("taskcell/io.weight")), [])
            print("lab: this kernel has no io.cost, so that only bfq's weights are tried", flush=True)
            return
        COST.write_text(number + " enable=1")
        self.addCleanup(COST.write_text, number + " enable=0")
        self.assertEqual(self.weigh(places.handed("taskcell-test"), "--io-weight=50")["io.weight"], "50")

    def test_io_is_not_handed_on(self):
        self.scheduler.write_text("bfq")
        refused = self.weigh(places.scope("alice"), "--io-weight=50")
        for text in ("resource_limits_unenforced", "there is no io", "Delegate=cpu cpuset io memory pids"):
            self.assertIn(text, refused)
        self.assertIn("up\n", self.launch(places.scope("alice"), "echo", "up").stdout)


class BusyDisk(WithADisk):
    """What a weight does. It wants a machine that is not busy otherwise, so it is not part of every run."""

    def read_at_once(self, *weights):
        """How many blocks each of two cells reads of the disk at the same time."""
        start = time.time() + CELL_START_S
        words = [f"--ro={MEDIUM}/data:/data", "--", "python3", "-c", READ, str(start), str(start + READ_S)]
        cells = [subprocess.Popen([*places.handed("taskcell-test"), LAUNCH, *weight, *words], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for weight in weights]
        told = [cell.communicate() for cell in cells]
        self.assertEqual([cell.returncode for cell in cells], [0, 0], told)
        return [int(out) for out, _ in told]

    def test_a_busy_disk_is_shared_by_weight(self):
        subprocess.run(["mkfs.ext4", "-q", "/dev/" + self.device], check=True)
        os.makedirs(MEDIUM, exist_ok=True)
        subprocess.run(["mount", "/dev/" + self.device, MEDIUM], check=True)
        self.addCleanup(subprocess.run, ["umount", MEDIUM], check=True)
        data = pathlib.Path(MEDIUM, "data")  # what is beside it is root's
        data.mkdir()
        (data / "file").write_bytes(os.urandom(16 << 20))
        os.sync()
        self.scheduler.write_text("bfq")
        # By weight alone: no start is made faster, and nobody is served while somebody heavier thinks.
        for name, value in (("low_latency", "0"), ("strict_guarantees", "1")):
            (self.scheduler.parent / "iosched" / name).write_text(value)
        alike = self.read_at_once([], [])
        first, second = self.read_at_once(["--io-weight=1000"], [])
        print(f"lab: blocks read by two cells of one weight {alike}, of ten times the weight {first} and {second}", flush=True)
        self.assertLess(max(alike), 1.5 * min(alike))
        self.assertGreater(first, 2 * second)

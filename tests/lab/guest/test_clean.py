"""`./dev clean` undoes what ./dev made on a host."""

import os
import pathlib
import pwd
import shutil
import subprocess

import places
from case import Case

FIXTURE = places.LAB + "/tests/support/fixture.sh"
USER = "taskcell-test"
TOPS = ("/etc", "/opt", "/run", "/tmp", "/usr", "/var/lib", "/var/tmp", "/sys/fs/cgroup")
MOVING = ("/run/systemd", "/run/udev", "/run/user", "/run/log", "/var/lib/systemd", "/etc/.pwd.lock")


def host_files():
    """What could have been left, without what a running system changes by itself."""
    found = set()
    for top in TOPS:
        for directory, names, files in os.walk(top):
            names[:] = [name for name in names if os.path.join(directory, name) not in MOVING]
            if top == "/sys/fs/cgroup":
                names[:] = [name for name in names if not name.endswith((".service", ".scope", ".slice", ".socket", ".mount"))]
                files = []
            found.update(os.path.join(directory, name) for name in names + files if not name.endswith("-"))
    return found - set(MOVING)


class Clean(Case):
    def setUp(self):
        super().setUp()
        # It removes build/ beside itself: a copy of the checkout.
        self.checkout = pathlib.Path(self.scratch, "checkout")
        (self.checkout / "tests").mkdir(parents=True)
        shutil.copy(places.LAB + "/dev", self.checkout)
        shutil.copytree(places.LAB + "/tests/support", self.checkout / "tests/support")
        self.addCleanup(subprocess.run, [FIXTURE, "up", places.LAB + "/build/release/bin"], check=True)

    def clean(self):
        (self.checkout / "build/release").mkdir(parents=True)
        ran = self.run_in([], str(self.checkout / "dev"), "clean")
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertFalse((self.checkout / "build").exists())

    def make_all(self):
        subprocess.run([FIXTURE, "up", places.LAB + "/build/release/bin"], check=True)
        subprocess.run([FIXTURE, "engine-up"], check=True)
        # A cell that is left, and root's own place, made by the launcher.
        subprocess.run([places.PROGRAMS + "/taskcell-launch", "--memory", "64M", "--", "true"], check=True)
        cell = subprocess.Popen([*places.handed(USER), places.PROGRAMS + "/taskcell-launch", "--memory", "64M", "--",
                                 "sh", "-c", "echo up; sleep 600"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(cell.wait)
        self.addCleanup(cell.kill)
        self.assertEqual(cell.stdout.readline(), "up\n")
        # What killed attacks of either user left.
        for uid in (0, pwd.getpwnam(USER).pw_uid):
            run = os.urandom(16).hex()
            left = pathlib.Path(f"/tmp/taskcell-attack-{uid}-{run}/work")
            left.mkdir(parents=True)
            os.chown(left.parent, uid, -1)
            pathlib.Path(f"/dev/shm/taskcell-attack-{run}").touch()

    def test_leaves_nothing_of_what_was_made(self):
        self.clean()
        bare = host_files()
        self.make_all()
        made = host_files() - bare
        for path in ("/var/lib/taskcell-test/bin", "/var/lib/taskcell-test/docker", "/run/taskcell-test/docker.sock"):
            self.assertIn(path, made)
        self.assertTrue([path for path in made if path.startswith("/sys/fs/cgroup")], made)
        self.assertIn(USER, [entry.pw_name for entry in pwd.getpwall()])
        self.clean()
        self.assertEqual(sorted(host_files() - bare), [])
        self.assertEqual(list(pathlib.Path("/dev/shm").glob("taskcell-*")), [])
        for name in ("passwd", "group", "subuid", "subgid"):
            self.assertNotIn(USER, pathlib.Path("/etc", name).read_text())
        self.assertEqual(self.run_in([], "pgrep", "-f", "taskcell-test").stdout, "")
        self.clean()  # with nothing there it is content


class ContainerClean(Case):
    """On cgroup v2 in a container's own root, which must be emptied to hand anything on."""

    def test_what_was_moved_goes_back(self):
        delegate = places.LAB + "/tests/support/delegate.sh"
        # In what it starts systemd makes one $ of two.
        script = (f"umount /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && cd /sys/fs/cgroup && test -f cgroup.type && {delegate} up alice && "
                  f"test -d taskcell/uid-1000 && grep -q memory cgroup.subtree_control && ! grep -q . cgroup.procs && "
                  f"{delegate} down alice && ! grep -q . cgroup.subtree_control && grep -qx $$$$ cgroup.procs && "
                  "test -z \"$(find . -mindepth 1 -type d)\"")
        ran = self.run_in(["systemd-run", "-q", "--wait", "--pipe", "--collect", "-p", "Delegate=yes"],
                          "unshare", "--cgroup", "--mount", "sh", "-exc", script)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

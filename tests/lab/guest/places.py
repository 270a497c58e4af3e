"""The places a program can be started in, inside the guest: who, and in which cgroup. Each gives the words that go
before the program's own."""

import os
import pwd
import subprocess
import time

LAB = "/lab"  # a checkout without its sources: dev, tests, build/release
UNIT = "lab-unit.service"
PLAIN_SLICE = "plain.slice"
MANAGER_S = 300
PROGRAMS = "/var/lib/taskcell-test/bin"


def root():
    """As root, in the unit that runs the tests."""
    return []


def handed(user):
    """As the user, in cgroup directories that root handed over by hand."""
    return [LAB + "/tests/support/delegate.sh", "exec", user]


def handed_bare(user):
    """The same where cgroup2 is mounted without nsdelegate, with which the kernel itself keeps who is in a cgroup namespace
    from the limits of its root."""
    bare = "mount -t cgroup2 -o remount,nosuid,nodev,noexec,relatime"
    return ["sh", "-c", f'{bare} cgroup2 /sys/fs/cgroup && ! grep -q nsdelegate /proc/mounts || exit 125\n"$@"\nstatus=$?\n'
            f"{bare},nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup && exit $status", "sh", *handed(user)]


def scope(user, *properties):
    """As the user, in a scope of its own manager, which is started when it is not there."""
    return _with_manager(user) + _scope(properties or ("Delegate=yes",))


def scope_of_no_delegation(user):
    """The same without Delegate=, as a terminal's, in a slice where no other unit has made the manager turn on cpu."""
    return scope(user, "Slice=" + PLAIN_SLICE)


def scope_from_no_delegation(user):
    """From there, in a scope of its own."""
    return scope_of_no_delegation(user) + _scope(("Delegate=yes",))


def service(user, *properties):
    """As the user, in a service of its own manager, in a slice as above."""
    return _with_manager(user) + ["systemd-run", "-q", "--user", "--wait", "--pipe", "--collect",
                                  *_options(("Slice=" + PLAIN_SLICE,) + properties)]


def manager(user):
    """As the user, with its manager within reach, but in root's cgroup."""
    return _with_manager(user)


def unit(user, *properties):
    """As the user, in a service of the system's manager."""
    return ["systemd-run", "-q", "--wait", "--pipe", "--collect", "--unit=" + UNIT, *_options(("User=" + user,) + properties)]


def login(user):
    """As the user, in a login session made by PAM: a session scope, root's own."""
    return unit(user, "PAMName=login")


def login_scope(user):
    """From there, in a scope of the user's own manager."""
    return login(user) + _scope(("Delegate=yes",))


def switched(user):
    """As the user by su from a login session of root's: the cgroup stays that session's."""
    return login("root") + ["su", "-s", "/bin/sh", "-c", 'exec "$@"', "--", user, "sh"]


def dropped(user):
    """As the user, by a program of root's that gave root up: the cgroup is that of root's service."""
    return ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "--reset-env", "--"]


def tmp_on(kind):
    """As root, with a file system of that kind in place of /tmp."""
    return ["unshare", "--mount", "sh", "-c", f'mount --bind {file_system(kind)} /tmp && exec "$@"', "sh"]


def few_rounds_on(kind):
    """The same for races: fewer rounds, which take long in emulation."""
    return tmp_on(kind) + ["env", "TASKCELL_TEST_FEW_ROUNDS=1"]


def file_system(kind):
    """Where one of that kind is mounted, made when it is first asked for: ext4, xfs, btrfs or tmpfs, an overlay of two
    directories, or a maze of bind mounts."""
    directory = "/mnt/" + kind
    if not os.path.ismount(directory):
        os.makedirs(directory, exist_ok=True)
        _MAKERS.get(kind, _mount_disk)(kind, directory)
    if kind == "maze":
        directory += "/loop/loop"
    os.chmod(directory, 0o1777)
    return directory


def _run(*words):
    subprocess.run(words, check=True)


def _mount_disk(kind, directory):
    disk = f"/var/tmp/{kind}.img"
    _run("truncate", "-s", "512M", disk)
    inodes = ["-N", "200000"] if kind == "ext4" else []  # the others make them as they are needed
    _run("mkfs." + kind, "-q", *inodes, disk)
    _run("mount", "-o", "loop", disk, directory)


def _mount_tmpfs(_kind, directory):
    _run("mount", "-t", "tmpfs", "-o", "size=512M", "tmpfs", directory)


def _mount_overlay(_kind, directory):
    layers = file_system("ext4") + "/layers"
    for name in ("lower", "upper", "work"):
        os.makedirs(f"{layers}/{name}")
    _run("mount", "-t", "overlay", "-o", f"lowerdir={layers}/lower,upperdir={layers}/upper,workdir={layers}/work",
         "overlay", directory)


def _mount_maze(kind, directory):
    """A directory on itself, twice, and below itself; what is reached last has all of them above it."""
    _mount_tmpfs(kind, directory)
    os.makedirs(directory + "/loop/loop")
    for target in (directory, directory, directory + "/loop", directory + "/loop/loop"):
        _run("mount", "--bind", directory, target)


_MAKERS = {"tmpfs": _mount_tmpfs, "overlay": _mount_overlay, "maze": _mount_maze}


def _scope(properties):
    return ["systemd-run", "-q", "--user", "--scope", *_options(properties)]


def _options(properties):
    words = []
    for each in properties:
        words += ["-p", each]
    return words


def wait_for_manager(user):
    bus = f"/run/user/{pwd.getpwnam(user).pw_uid}/bus"
    end = time.monotonic() + MANAGER_S
    while not os.path.exists(bus):
        if time.monotonic() > end:
            raise TimeoutError(bus)
        time.sleep(0.1)


def _with_manager(user):
    entry = pwd.getpwnam(user)
    directory = f"/run/user/{entry.pw_uid}"
    if not os.path.exists(directory + "/bus"):
        subprocess.run(["loginctl", "enable-linger", user], check=True)
        wait_for_manager(user)
    return ["setpriv", "--reuid", user, "--regid", user, "--init-groups", "env", "-i",
            "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", f"HOME={entry.pw_dir}", f"USER={user}",
            f"XDG_RUNTIME_DIR={directory}", f"DBUS_SESSION_BUS_ADDRESS=unix:path={directory}/bus"]

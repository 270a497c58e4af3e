"""taskcell-probe's verdict in each place and on each cgroup mode, and that who follows nothing but the printed fixes ends
with limits that hold."""

import json
import os
import pathlib
import pwd
import re
import subprocess
import time

import places
from case import LAUNCH, LIMITS, PROBE, Case

CONTROLLERS = ("memory", "pids", "cpu")

# What of a fix can be pasted: what root does, and how the user starts the command.
COMMANDS = re.compile(r"taskcell-probe delegate --user \S+ --apply"
                      r"|mkdir -p \S+ && printf '[^']*' >\S+ && systemctl daemon-reload"
                      r"|systemctl restart [^\s)]+|sysctl -w [^\s,]+|loginctl enable-linger \w+")
EXPORT = re.compile(r"export XDG_RUNTIME_DIR=[^\s)]+")
START = re.compile(r"systemd-run --user --scope -p Delegate=yes")


MAX_ROUNDS = 4


def wrong_in(told):
    return [each for each in told["findings"] if each["verdict"] in ("limited", "not")]


class ProbeCase(Case):
    def probe(self, place):
        ran = self.run_in(place, PROBE, "--json")
        self.assertTrue(ran.stdout.startswith("{"), f"{place}: status {ran.returncode} {ran.stdout} {ran.stderr}")
        return json.loads(ran.stdout)

    def assert_verdict(self, place, missing=(), who="none", fix=""):
        """Each limit that is missing has that person and text in its fix, all others can be enforced."""
        told = self.probe(place)
        states = {name: told["limits"][name]["state"] for name in CONTROLLERS}
        self.assertEqual(states, {name: "no" if name in missing else "yes" for name in CONTROLLERS}, told["limits"])
        for name in missing:
            self.assertEqual(told["limits"][name]["who"], who, told["limits"][name])
            self.assertIn(fix, told["limits"][name]["fix"])
        return told

    def run_as_root(self, command):
        return self.run_in([], "sh", "-c", f"PATH={places.PROGRAMS}:$PATH; {command}")

    def mend(self, place):
        """Does what the fixes say, root's commands as root, until the probe is content; gives the place to start from."""
        for _ in range(MAX_ROUNDS):
            wrong = wrong_in(self.probe(place))
            if not wrong:
                return place
            for command in dict.fromkeys(command for each in wrong for command in COMMANDS.findall(each["fix"])):
                ran = self.run_as_root(command)
                # A manager that runs has what it was given before, until the next command; and live may run out of time.
                accepted = (0, 1, 3) if "delegate" in command else (0,)
                self.assertIn(ran.returncode, accepted, command + ran.stdout + ran.stderr)
                if command.startswith("loginctl enable-linger"):  # the manager starts in the background
                    places.wait_for_manager(command.split()[-1])
            start = START.search(wrong[0]["fix"])
            if start:
                export = EXPORT.search(wrong[0]["fix"])
                place = place + ["sh", "-c", (export.group() + "; " if export else "") + start.group() + ' "$@"', "sh"]
        raise AssertionError(f"still wrong: {wrong}")

    def assert_mended(self, place):
        """No cell is made in that place, and after the fixes every limit of one holds."""
        self.assertIsNotNone(self.break_limits(place, "live")["refusal"])
        place = self.mend(place)
        self.assert_no_limit_breaks(place, "live")
        self.assert_nothing_left()


class UnifiedProbe(ProbeCase):
    """With systemd on the unified hierarchy."""

    def test_scope_of_the_users_manager(self):
        self.assert_verdict(places.scope("alice"))

    def test_unit_with_delegate(self):
        self.assert_verdict(places.unit("alice", "Delegate=yes"))

    def test_directories_handed_over_by_root(self):
        self.assert_verdict(places.handed("taskcell-test"))

    def test_manager_with_memory_and_pids(self):
        told = self.assert_verdict(places.scope("carol"), ("cpu",), "admin", "taskcell-probe delegate --user carol --apply")
        self.assertIn("/user-1002.slice", told["limits"]["cpu"]["level"])

    def test_manager_without_cpu(self):
        self.assert_verdict(places.scope("dave"), ("cpu",), "admin", "taskcell-probe delegate --user dave --apply")

    def test_manager_without_delegation(self):
        told = self.assert_verdict(places.login("bob"), CONTROLLERS, "admin", "taskcell-probe delegate --user bob --apply")
        self.assertIn("/etc/systemd/system/user@1001.service.d/lab.conf", told["limits"]["memory"]["reason"])
        self.assertNotIn("dbus-user-session", json.dumps(told))

    def test_login_session(self):
        self.assert_verdict(places.login("alice"), CONTROLLERS, "user", "systemd-run --user --scope -p Delegate=yes")

    def test_switched_user(self):
        self.assert_verdict(places.switched("alice"), CONTROLLERS, "user", "export XDG_RUNTIME_DIR=/run/user/1000")

    def test_user_without_linger(self):
        self.assert_verdict(places.switched("erin"), CONTROLLERS, "user", "loginctl enable-linger erin")

    def test_unit_without_delegate(self):
        told = self.assert_verdict(places.unit("alice"), CONTROLLERS, "admin", places.UNIT + ".d")
        self.assertIn("Delegate=yes", told["limits"]["memory"]["fix"])

    def test_unit_that_hides_openat2(self):
        for setting, who in (("RestrictSUIDSGID=yes", "admin"), ("SystemCallFilter=~openat2", "outer")):
            with self.subTest(setting):
                told = self.assert_verdict(places.unit("alice", "Delegate=yes", setting))
                [row] = [each for each in told["findings"] if each["id"] == "kernel.openat2"]
                self.assertEqual((row["verdict"], row["who"]), ("note", who), row)
                self.assertIn(setting.split("=")[0], row["reason"] + row["fix"])

    def test_no_user_namespaces(self):
        self.write_for_the_test("/proc/sys/user/max_user_namespaces", "0")
        told = self.assert_verdict(places.scope("alice"))
        self.assertEqual((told["userns"]["state"], told["userns"]["who"]), ("no", "admin"))
        self.assertIn("max_user_namespaces", told["userns"]["fix"])


class UnifiedLive(ProbeCase):
    """Limits broken from inside, in each place that differs in who handed them over."""

    def test_scope_of_the_users_manager(self):
        self.assert_no_limit_breaks(places.scope("alice"), "live")
        self.assert_nothing_left()

    def test_unit_with_delegate(self):
        self.assert_no_limit_breaks(places.unit("alice", "Delegate=yes"), "live")

    def test_swap_is_no_way_out(self):
        self.switch_swap_on()
        self.assert_no_limit_breaks(places.scope("alice"), "live")

    def test_login_session(self):
        # The launcher asks the user's manager for a scope.
        self.assert_no_limit_breaks(places.login("alice"), "live")

    def test_no_cell_where_nothing_is_handed_over(self):
        self.assert_probe_makes_no_cell(places.unit("alice"), places.UNIT + ".d")
        self.assert_probe_makes_no_cell(places.scope("dave"), "there is no cpu")


class UnifiedFixes(ProbeCase):
    """Broken, then mended with the printed commands alone."""

    def test_controllers_that_the_manager_is_not_given(self):
        self.addCleanup(self.run_as_root, "taskcell-probe delegate --user carol --revert")
        self.assert_mended(places.scope("carol"))

    def test_no_user_namespaces(self):
        self.write_for_the_test("/proc/sys/user/max_user_namespaces", "0")
        self.assert_mended(places.scope("alice"))

    def test_login_session(self):
        self.assert_no_limit_breaks(self.mend(places.login("alice")), "live")

    def test_switched_user_without_a_manager(self):
        self.addCleanup(subprocess.run, ["loginctl", "disable-linger", "erin"])
        self.assert_limits_hold(self.mend(places.switched("erin")))

    def test_unit_without_delegate(self):
        self.assert_unit_is_mended("")

    def assert_unit_is_mended(self, settings):
        """A unit that runs a cell each time it is started: not with these settings, and then with what the probe told
        from inside it."""
        unit = pathlib.Path("/etc/systemd/system", places.UNIT)
        self.addCleanup(self.remove_unit, unit)
        answer = self.scratch + "/answer"
        cell = f"{LAUNCH} {' '.join(LIMITS)} -- true"
        unit.write_text(f"[Service]\nType=oneshot\nUser=alice\n{settings}"
                        f"ExecStart=/bin/sh -c '{PROBE} --json >{answer}; exec {cell}'\n")
        subprocess.run(["systemctl", "daemon-reload"], check=True)
        started = self.run_in([], "systemctl", "start", places.UNIT)
        self.assertEqual(started.returncode, 1, started.stderr)
        wrong = wrong_in(json.loads(pathlib.Path(answer).read_text()))
        # The last command of each starts the unit again.
        commands = dict.fromkeys(command for each in wrong for command in COMMANDS.findall(each["fix"]))
        statuses = [self.run_in([], "sh", "-c", command).returncode for command in commands]
        self.assertEqual(statuses[-1], 0, commands)
        self.assertEqual(self.run_in([], "systemctl", "show", "-P", "Result", places.UNIT).stdout, "success\n")

    def remove_drop_in(self, unit):
        path = pathlib.Path("/etc/systemd/system", unit + ".d", "taskcell.conf")
        path.unlink(missing_ok=True)
        subprocess.run(["systemctl", "daemon-reload"], check=True)

    def remove_unit(self, unit):
        unit.unlink()
        self.remove_drop_in(unit.name)


class Delegate(ProbeCase):
    """What taskcell-probe delegate does as root, and that nothing of it stays when it is undone."""

    def delegate(self, user, option):
        return self.run_as_root(f"taskcell-probe delegate --user {user} {option}")

    def assert_applied_twice_and_undone(self, user, place):
        self.await_no_manager(user)
        before = self.listing()
        self.addCleanup(self.delegate, user, "--revert")
        for _ in range(2):
            ran = self.delegate(user, "--apply")
            # A machine that is only emulated can be too slow for live's own time: then it could not tell.
            self.assertIn(ran.returncode, (0, 3), ran.stdout + ran.stderr)
            self.assertIn("taskcell-probe live as " + user, ran.stdout)
            self.assertNotIn("NOT HELD", ran.stdout)
        self.assert_limits_hold(place())
        self.assertEqual(self.delegate(user, "").returncode, 0)
        self.assertNotEqual(self.listing(), before)
        undone = self.delegate(user, "--revert")
        self.assertEqual(undone.returncode, 0, undone.stdout + undone.stderr)
        self.assertEqual(self.listing(), before)

    def await_no_manager(self, user):
        """The end of one that an earlier test started is not waited for there."""
        uid = pwd.getpwnam(user).pw_uid
        end = time.monotonic() + places.MANAGER_S
        while os.path.exists(f"/sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def listing(self):
        """What a host is told about its users, and the cgroups that are no service's."""
        found = ["/etc/taskcell", "/var/lib/taskcell-delegate"]
        found += [each for top in ("/etc/systemd/system", "/var/lib/systemd/linger") for each in self.below(top)]
        found += [each for each in self.below("/sys/fs/cgroup") if "/taskcell" in each]
        return [(each, os.stat(each, follow_symlinks=False)[:6]) for each in sorted(found) if os.path.lexists(each)]

    def below(self, top):
        return [os.path.join(place, name) for place, folders, files in os.walk(top) for name in folders + files]


class UnifiedDelegate(Delegate):
    """With systemd on the unified hierarchy: the user's manager."""

    def test_user_without_linger(self):
        self.assert_applied_twice_and_undone("erin", lambda: places.scope("erin"))

    def test_manager_that_cannot_start_for_want_of_delegation(self):
        self.assert_applied_twice_and_undone("bob", lambda: places.scope("bob"))


class V1Delegate(Delegate):
    """With v1 hierarchies, of which no service manager hands anything over."""

    def test_directories(self):
        self.assert_applied_twice_and_undone("erin", lambda: places.dropped("erin"))

    def test_directories_are_made_again_at_boot(self):
        self.addCleanup(self.delegate, "erin", "--revert")
        self.assertIn(self.delegate("erin", "--apply").returncode, (0, 3))
        for each in pathlib.Path("/sys/fs/cgroup").glob("*/taskcell/uid-1004"):
            each.rmdir()
        started = self.run_in([], "systemctl", "start", "taskcell-uid-1004.service")
        self.assertEqual(started.returncode, 0, started.stderr)
        self.assertEqual(self.run_in([], "systemctl", "is-enabled", "taskcell-uid-1004.service").stdout, "enabled\n")
        self.assert_limits_hold(places.dropped("erin"))


class V1Probe(ProbeCase):
    """With v1 hierarchies, of which no service manager hands anything over."""

    def test_stranger_and_then_with_prepared_directories(self):
        self.addCleanup(self.run_as_root, "taskcell-probe delegate --user erin --revert")
        place = places.dropped("erin")
        self.assert_verdict(place, CONTROLLERS, "admin", "taskcell-probe delegate --user erin --apply")
        self.assert_mended(place)

    def test_directories_handed_over_by_root(self):
        self.assert_verdict(places.handed("taskcell-test"))

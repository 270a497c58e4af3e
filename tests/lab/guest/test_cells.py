"""Whole cells made by the launcher: limits that hold where they are delegated, refusals with their remedy elsewhere."""

import ctypes
import os
import pwd
import subprocess

import places
from case import LAUNCH, LIMITS, Case


class Cells(Case):
    """On every cgroup mode."""

    def test_limits_hold_where_root_handed_over_directories(self):
        self.assert_limits_hold(places.handed("taskcell-test"))
        self.assert_nothing_left()

    def test_limits_hold_for_root(self):
        self.assert_limits_hold(places.root())

    def test_root_becomes_nobody(self):
        ran = self.launch(places.root(), "cat", "/proc/self/uid_map")
        self.assertIn("65534", ran.stdout.split(), ran.stderr)

    def test_stranger_is_refused(self):
        self.assert_refused(places.dropped("erin"), "resource_limits_unenforced", "administrator", "What to do")

    def test_crash_reaches_no_handler_of_the_host(self):
        crash = ["python3", "-c", "import os; os.abort()"]
        seen = "/run/core-seen"
        with open("/proc/sys/kernel/core_pattern", "r+", encoding="ascii") as pattern:
            before = pattern.read()
            pattern.seek(0)
            pattern.write(f"|/usr/bin/dd of={seen}")
        try:
            # A limit of 0 does not stop a handler: the kernel pipes the dump all the same.
            subprocess.run(["sh", "-c", 'ulimit -c 0; exec "$@"', "sh", *crash], check=False)
            self.assertTrue(os.path.exists(seen), "control: the handler is called")
            os.remove(seen)
            ran = self.launch(places.handed("taskcell-test"), *crash)
            self.assertEqual(ran.report["signal"], 6, ran.stderr)
            self.assertFalse(os.path.exists(seen))
            # A caller who may have none cannot give a cell 1.
            none = self.run_in(places.handed("taskcell-test"), "sh", "-c", 'ulimit -Hc 0; exec "$@"', "sh",
                               LAUNCH, *LIMITS, "--", *crash)
            self.assertEqual(none.returncode, 125, none.stderr)
            self.assertIn("ulimit -Hc", none.stderr)
            self.assertFalse(os.path.exists(seen))
        finally:
            with open("/proc/sys/kernel/core_pattern", "w", encoding="ascii") as pattern:
                pattern.write(before)


class X32(Case):
    """On a kernel that answers x32's calls."""

    def test_x32_is_there_and_not_in_a_cell(self):
        getpid = "import ctypes; print(ctypes.CDLL(None).syscall(0x40000000 | 39))"
        self.assertEqual(ctypes.CDLL(None).syscall(0x40000000 | 39), os.getpid())
        ran = self.launch(places.handed("taskcell-test"), "python3", "-c", getpid)
        self.assertEqual((ran.report["signal"], ran.stdout), (31, ""), ran.stderr)


class UnifiedCells(Case):
    """On the unified hierarchy with systemd, in each place a user can be in."""

    def test_scope_of_the_users_manager(self):
        self.assert_limits_hold(places.scope("alice"))

    def test_subordinate_id(self):
        ran = self.run_in(places.scope("alice"), LAUNCH, "--userns=subids", *LIMITS, "--", "id", "-u")
        self.assertEqual((ran.returncode, ran.stdout), (0, "1000\n"), ran.stderr)

    def test_unit_with_delegate(self):
        self.assert_limits_hold(places.unit("alice", "Delegate=yes"))

    def test_unit_without_delegate(self):
        self.assert_refused(places.unit("alice"), "resource_limits_unenforced", places.UNIT + ".d", "Delegate=yes")

    def test_units_of_the_users_manager_without_delegate(self):
        # The launcher takes nobody out of a unit, and so out of its limits, by itself.
        for place in (places.scope_of_no_delegation("alice"), places.service("alice")):
            refused = self.assert_refused(place, "resource_limits_unenforced", "there is no cpu",
                                          "systemd-run --user --scope -p Delegate=yes",
                                          "would leave the unit of that manager that it is in, and its limits")
            self.assertNotIn("administrator", refused.stderr)
        # What it was told to do, and what else the user can do.
        self.assert_limits_hold(places.scope_from_no_delegation("alice"))
        self.assert_limits_hold(places.service("alice", "Delegate=yes"))

    def test_switched_user(self):
        # The manager is asked for a scope, in whosever session the user is.
        self.assert_limits_hold(places.switched("alice"))

    def test_switched_user_without_a_manager(self):
        self.assert_refused(places.switched("erin"), "resource_limits_unenforced", "loginctl enable-linger erin")

    def test_login_session(self):
        self.assert_limits_hold(places.login("alice"))

    def test_check_in_a_login_session(self):
        checked = self.run_in(places.login("alice"), LAUNCH, "--check")
        self.assertEqual((checked.returncode, checked.stdout.count("pass ")), (0, 9), checked.stdout + checked.stderr)

    def test_scope_that_cannot_be_had_is_told_why(self):
        session = places.unit("alice", "PAMName=login", "InaccessiblePaths=/usr/bin/busctl")
        self.assert_refused(session, "resource_limits_unenforced", "no scope of the user's manager was to be had", "busctl")
        checked = self.run_in(session, LAUNCH, "--check")
        self.assertEqual(checked.returncode, 1, checked.stdout + checked.stderr)
        self.assertRegex(checked.stdout, r"(?m)^-     scope .*busctl")

    def test_scope_is_gone_with_its_cell(self):
        self.launch(places.login("alice"), "true")
        units = subprocess.run(["systemctl", "--user", "-M", "alice@", "list-units", "--all", "--plain", "taskcell-*"],
                               capture_output=True, text=True, check=True)
        self.assertIn("0 loaded units", units.stdout)

    def test_scope_from_a_login_session(self):
        self.assert_limits_hold(places.login_scope("alice"))

    def test_manager_without_delegation(self):
        # Not even the manager starts.
        self.assert_refused(places.login("bob"), "resource_limits_unenforced")
        self.assertFalse(os.path.exists(f"/run/user/{pwd.getpwnam('bob').pw_uid}/bus"))

    def test_manager_with_memory_and_pids(self):
        self.assert_refused(places.scope("carol"), "offers 'memory pids', there is no cpu",
                            "taskcell-probe delegate --user carol --apply")

    def test_missing_cpu_can_be_allowed(self):
        ran = self.run_in(places.scope("carol"), LAUNCH, "--allow-missing=cpu", *LIMITS, "--", "true")
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_manager_without_cpu(self):
        self.assert_refused(places.scope("dave"), "offers 'cpuset io memory pids', there is no cpu",
                            "taskcell-probe delegate --user dave --apply")

    def test_unit_that_hides_openat2(self):
        self.assert_limits_hold(places.unit("alice", "Delegate=yes", "RestrictSUIDSGID=yes"))

    def test_no_user_namespaces(self):
        self.write_for_the_test("/proc/sys/user/max_user_namespaces", "0")
        self.assert_refused(places.scope("alice"), "max_user_namespaces")

    def test_swap_is_no_way_out(self):
        self.switch_swap_on()
        self.assert_limits_hold(places.scope("alice"))

    def test_nothing_is_left(self):
        self.assert_limits_hold(places.scope("alice"))
        self.assert_nothing_left()

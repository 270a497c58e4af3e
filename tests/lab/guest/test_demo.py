"""The demo, as a person runs it, without a network."""

import places
from case import Case

DEMO = [places.LAB + "/dev", "demo", "--no-install"]


class DemoCase(Case):
    def assert_demo_passes(self, place):
        ran = self.run_in(place, *DEMO, timeout=600)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertIn("left behind: 0 processes, 0 run directories, 0 cgroups", ran.stdout)


class Demo(DemoCase):
    """On every cgroup mode."""

    def test_as_root(self):
        self.assert_demo_passes(places.root())


class UserDemo(DemoCase):
    """By a user whom systemd delegates to; the demo itself asks for the scope."""

    def test_as_a_user_in_a_login_session(self):
        self.assert_demo_passes(places.login("alice"))

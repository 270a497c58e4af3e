"""Where SELinux is in force and labels an engine's containers: refused with that cause, and with the manual's policy a cell."""

import json
import pathlib
import re

import places
import test_tasks

LEVEL = ["runcon", "-l", "s0"]
MANUAL = places.LAB + "/man/taskcell-gateway.8"


def policy_of_the_manual():
    """The commands that its section SELINUX gives an administrator, in one text."""
    section = pathlib.Path(MANUAL).read_text().split(".Sh SELINUX\n")[1].split(".Sh ")[0]
    return re.search(r"\.Bd -literal[^\n]*\n(.*?)\.Ed", section, re.DOTALL)[1]


class Selinux(test_tasks.Tasks):
    """On rootless Podman, by the programs of the package, whose places have labels of their own."""

    test_rootful_docker = None
    test_rootless_docker = None
    test_rootless_podman = None
    url = "http://127.0.0.1:9/v1"  # a script asks no provider
    level = []

    def setUp(self):
        super().setUp()
        self.assertEqual(pathlib.Path("/sys/fs/selinux/enforce").read_text(), "1")
        [package] = pathlib.Path(places.LAB, "build/release/package").glob("taskcell_*.deb")
        self.run_in([], "dpkg", "--install", str(package)).check_returncode()
        self.addCleanup(self.run_in, [], "dpkg", "--purge", "taskcell")

    def test_a_denied_container_is_named_and_the_manuals_policy_lets_it_be(self):
        super().test_rootless_podman()

    def client(self, url, *words):
        return [*places.manager("alice"), *self.level, "taskcell", *words]

    def give_to_alice(self, home):
        super().give_to_alice(home)
        self.run_in([], "restorecon", "-RF", str(home)).check_returncode()

    def assert_engine(self, place, socket_path):
        engine, home = self.prepare(socket_path)
        self.assertIn("name=selinux", json.loads(engine.ask("GET", "/info"))["SecurityOptions"])
        refused = self.run_label_script(home)
        self.assertEqual((refused["code"], refused["stdout"]), ("create_failed", ""), refused)
        self.assertIn("SELinux labels this engine's containers", refused["message"])
        self.assertIn("taskcell-gateway(8), SELINUX", refused["message"])
        task = self.answer(self.url, home, "run", "scout", "Read the value.")
        self.assertEqual(task["code"], "resource_limits_unenforced", task)
        self.assertIn("taskcell-gateway(8), SELINUX", task["message"])
        self.assert_tidy(engine, home)

        self.set_up_as_the_manual_says(home)
        # This policy keeps a container from whoever has categories that it has not.
        self.assertEqual(self.run_label_script(home)["code"], "create_failed")
        self.level = LEVEL
        # A second time, for what a refusal or an end could take away.
        for _ in range(2):
            answer = self.run_label_script(home)
            self.assertEqual((answer["code"], answer["cell"]["verified"]), ("ok", True), answer)
            self.assertRegex(answer["stdout"], r"^system_u:system_r:container_t:s0:c\d+,c\d+")
        self.assert_tidy(engine, home)

    def run_label_script(self, home):
        text = pathlib.Path(self.scratch, "label")
        text.write_text("cat /proc/self/attr/current\n")
        return self.answer(self.url, home, "script", "--language", "bash", str(text))

    def set_up_as_the_manual_says(self, home):
        mkdir, *commands = policy_of_the_manual().replace("/srv/taskcell", str(home)).split("\n")
        self.run_in(places.manager("alice"), "sh", "-c", mkdir).check_returncode()
        ran = self.run_in([], "sh", "-ec", "\n".join(commands), cwd=self.scratch)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.addCleanup(self.run_in, [], "semodule", "-r", "taskcell")

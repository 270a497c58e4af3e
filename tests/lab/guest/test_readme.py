"""The README's way from a bare machine to a first task, as a new user goes it, line by line."""

import json
import pathlib
import pwd
import shutil

import places
import readme
import test_package
import test_tasks

CHECKOUT = places.LAB
# Wherever the key could have come to lie.
SEARCHED = ("/etc", "/home", "/root", "/run", "/tmp", "/var")


class InstalledByReadme(test_package.Package):
    def install(self):
        """That is for the README."""

    def setUp(self):
        super().setUp()
        self.home = pathlib.Path(pwd.getpwnam("alice").pw_dir)
        self.drop_ins = self.home / ".config/systemd/user" / (test_package.GATEWAY + ".d")
        self.manager = places.manager("alice")
        may_be_root = pathlib.Path("/etc/sudoers.d/lab")
        self.addCleanup(may_be_root.unlink)
        may_be_root.write_text("alice ALL=(ALL) NOPASSWD: ALL\n")
        may_be_root.chmod(0o440)
        self.addCleanup(pathlib.Path("/usr/local/bin/claude").unlink, True)
        for made in (self.home / ".taskcell", self.drop_ins):
            self.addCleanup(shutil.rmtree, made, True)
        self.addCleanup(self.run_in, self.manager, "systemctl", "--user", "disable", "--now", test_package.GATEWAY)

    def test_each_line_works_and_the_task_answers(self):
        port = test_tasks.start_provider(
            self, {"steps": [{"do": "read", "path": "/agent/wiki/about.md"}], "reply": "It says: {last}"})
        commands = readme.substituted(readme.commands(pathlib.Path(CHECKOUT, "README.md").read_text()),
                                      claude=CHECKOUT + "/tests/support/claude.py", provider=f"http://127.0.0.1:{port}")
        ran = readme.follow(places.login("alice"), CHECKOUT, self.scratch, commands, test_tasks.KEY + "\n",
                            "systemctl --user is-active taskcell-gateway")
        for each in ran:
            print(f"lab: {each.status} {each.command.splitlines()[0]}")
            self.assertEqual(each.status, 0, each)
        self.assertEqual([each.command for each in ran], commands, "it broke off")
        [enabled] = [each for each in ran if "systemctl --user enable" in each.command]
        [answered] = [each for each in ran if each.command.startswith("taskcell submit")]
        self.assertEqual((enabled.after, answered.after, ran[-1].after), ("active\n", "active\n", "inactive\n"))
        about = (self.home / ".taskcell/agents/my-agent/wiki/about.md").read_text()
        self.assertEqual(answered.out, "It says: " + about, answered)
        [receipt] = (self.home / ".taskcell/sandbox/receipts").glob("*.json")
        self.assertTrue(json.loads(receipt.read_text())["verified"], "it was a cell's answer")
        self.assert_the_key_is_in(self.drop_ins / "key.conf")

    def assert_the_key_is_in(self, *files):
        """In these and in no other file, which nobody else may read."""
        found = self.run_in([], "grep", "-rlaFD", "skip", "--", test_tasks.KEY, *SEARCHED).stdout.split("\n")
        self.assertEqual(sorted(found), ["", *sorted(map(str, files))])
        self.assertEqual([file.stat().st_mode & 0o777 for file in files], [0o600] * len(files))

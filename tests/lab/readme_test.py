"""How the lab follows the README: what it puts in the place of lines is still there, and no line that fails is passed over."""

import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "guest"))

import readme  # noqa: E402

README = (HERE / "../../README.md").read_text()
VALUES = {"claude": "/stand-in", "provider": "http://127.0.0.1:9"}


def with_block(block):
    return f"# x\n\n## {readme.SECTION}\n\n```\ntrue\n```\n\ntext `false`\n\n```\n{block}```\n\n## Other\n\n```\nfalse\n```\n"


class ReadmeTest(unittest.TestCase):
    def follow(self, block, typed=""):
        with tempfile.TemporaryDirectory() as scratch:
            return readme.follow([], "/usr", scratch, readme.commands(with_block(block)), typed)

    def test_each_substitution_is_for_one_line_of_the_section(self):
        found = readme.commands(README)
        ran = readme.substituted(found, **VALUES)
        self.assertEqual(len(found), len(ran))
        changed = [line for line, was in zip(ran, found) if line != was]
        self.assertEqual(len(changed), len(readme.SUBSTITUTIONS))
        self.assertNotIn("{", "".join(changed))
        for left, _ in readme.SUBSTITUTIONS:
            with self.subTest(left=left), self.assertRaisesRegex(LookupError, "in 0 places"):
                readme.substituted([line.replace(left, "another") for line in found], **VALUES)
            with self.subTest(twice=left), self.assertRaisesRegex(LookupError, "in 2 places"):
                readme.substituted(found + [left], **VALUES)

    def test_the_lines_that_the_lab_looks_at_are_there(self):
        found = readme.commands(README)
        for begin in ("systemctl --user enable", "taskcell submit", "read "):
            self.assertEqual(len([line for line in found if line.startswith(begin)]), 1, begin)
        self.assertTrue(found[-1].startswith("systemctl --user stop"), found[-1])

    def test_lines_run_in_one_shell_each_with_its_here_document(self):
        ran = self.follow("cd bin\numask 077\npwd; umask\ncat <<'END'\n$a\nfalse\nEND\nread -rsp 'k: ' key && echo \"$key\"\n",
                          "secret\n")
        self.assertEqual([each.status for each in ran], [0] * 6)
        self.assertEqual([each.out for each in ran], ["", "", "", "/usr/bin\n0077\n", "$a\nfalse\n", "secret\n"])

    def test_nothing_but_who_asks_for_it_gets_what_is_typed(self):
        ran = self.follow("cat\nread -r key; echo \"$key\"\n", "secret\n")
        self.assertEqual([each.out for each in ran], ["", "", "secret\n"])

    def test_the_first_line_that_fails_ends_it(self):
        for line in ("false", "no-such-program", "exit 0", "true | (exit 3)", "read -r key && true"):
            with self.subTest(line=line):
                ran = self.follow(f"echo before\n{line}\necho after\n")
                self.assertEqual([each.command for each in ran if each.status == 0][:2], ["true", "echo before"])
                self.assertNotIn("echo after", [each.command for each in ran])


if __name__ == "__main__":
    unittest.main()

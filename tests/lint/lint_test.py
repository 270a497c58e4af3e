#!/usr/bin/env python3
"""Plants one breach of every rule in a temporary tree, next to its allowed twin, and expects exactly that breach."""
import os
import tempfile
import unittest

import lint


def breaches_of(path, text):
    """(rule, line) of each breach in a tree that holds this one file."""
    with tempfile.TemporaryDirectory() as root:
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full))
        with open(full, "w", encoding="utf-8") as source:
            source.write(text)
        found, files = lint.lint(root)
    assert files == 1, files
    return [(breach.rule, breach.line) for breach in found]


class IncludeDirectionTest(unittest.TestCase):
    def test_every_room_may_use_exactly_its_row(self):
        headers = {room: room + "/x.h" for room in lint.ROOMS}
        for room in lint.ROOMS:
            text = "".join(f'#include "{header}"\n' for header in headers.values())
            refused = [line for line, target in enumerate(headers, 1)
                       if target != room and target not in lint.ROOMS[room]]
            self.assertEqual(breaches_of(room + "/a.cc", text), [("include-direction", line) for line in refused], room)

    def test_the_order_of_the_rooms_is_kept(self):
        left_to_right = [["seccomp"], ["launcher/base", "launcher/sys"],
                         ["launcher/cell", "launcher/cgroup", "launcher/gate", "launcher/mounts"],
                         ["launcher/native", "launcher/init"], *[[room] for room in lint.PROBE_FOLDERS], ["probe"],
                         ["gateway/config", "gateway/runtimes", "gateway/ledger"],
                         ["gateway/egress", "gateway/sweep", "gateway/doctor"], ["gateway/task"], ["gateway/cli"]]
        for at, rooms in enumerate(left_to_right):
            later = [room for group in left_to_right[at + 1:] for room in group]
            text = "".join(f'#include "{target}/b.h"\n' for target in later)
            for room in rooms:
                everything_refused = [("include-direction", line + 1) for line in range(len(later))]
                self.assertEqual(breaches_of(room + "/a.h", text), everything_refused, room)

    def test_folders_inside_a_room_belong_to_it(self):
        self.assertEqual(breaches_of("probe/attack/payloads/a.cc", '#include "probe/attack/b.h"\n'), [])
        self.assertEqual(breaches_of("probe/engine/a.cc", '#include "gateway/config/b.h"\n'),
                         [("include-direction", 1)])
        self.assertEqual(breaches_of("gateway/runtimes/loop/a.cc", '#include "gateway/egress/b.h"\n'),
                         [("include-direction", 1)])

    def test_product_code_may_not_use_tests(self):
        self.assertEqual(breaches_of("probe/a.cc", '#include "tests/support/fixture.h"\n'), [("include-direction", 1)])

    def test_a_file_outside_the_rooms_is_a_breach(self):
        self.assertEqual(breaches_of("launcher/util/a.cc", "int x;\n"), [("room", 1)])
        self.assertEqual(breaches_of("gateway/a/b/c.cc", "int x;\n"), [("room", 1)])
        self.assertEqual(breaches_of("launcher/main.cc", '#include "launcher/native/b.h"\n'), [])
        self.assertEqual(breaches_of("gateway/main.cc", '#include "gateway/api/b.h"\n'), [])

    def test_slow_headers_stay_out_of_headers(self):
        for header in ("nlohmann/json.hpp", "toml++/toml.h", "CLI/CLI.hpp"):
            self.assertEqual(breaches_of("gateway/config/a.h", f"#include <{header}>\n"), [("slow-header", 1)])
            self.assertEqual(breaches_of("gateway/config/a.cc", f"#include <{header}>\n"), [])
        self.assertEqual(breaches_of("gateway/config/a.h", "#include <nlohmann/json_fwd.hpp>\n"), [])


class CallTest(unittest.TestCase):
    def test_descriptors_are_born_close_on_exec(self):
        for call, flag in lint.CLOEXEC.items():
            self.assertEqual(breaches_of("launcher/sys/a.cc", f"int F() {{ return ::{call}(1,\n G(2)); }}\n"),
                             [("cloexec", 1)])
            self.assertEqual(breaches_of("launcher/sys/a.cc", f"int F() {{ return ::{call}(1,\n G(2) | {flag}); }}\n"), [])

    def test_calls_without_the_flag_are_refused(self):
        for call in lint.NEVER:
            self.assertEqual(breaches_of("launcher/sys/a.cc", f"\nint x = {call}(y);\n"), [("cloexec", 2)])
            self.assertEqual(breaches_of("launcher/sys/a.cc", f"int x = server.{call}(y) + sys::{call}(y);\n"), [])

    def test_declarations_are_no_calls(self):
        self.assertEqual(breaches_of("launcher/sys/a.cc", "UniqueFd socket(fd);\nResult<int> accept(int fd);\n"), [])
        self.assertEqual(breaches_of("launcher/sys/a.cc", "if (x)\n  return socket(a, b, c);\nelse accept(d);\n"),
                         [("cloexec", 2), ("cloexec", 3)])

    def test_dup2_stays_in_sys(self):
        self.assertEqual(breaches_of("launcher/init/a.cc", "int x = ::dup2(y, 0);\n"), [("cloexec", 1)])
        self.assertEqual(breaches_of("launcher/sys/a.cc", "int x = ::dup2(y, 0);\n"), [])

    def test_comments_and_strings_are_no_calls(self):
        self.assertEqual(breaches_of("probe/a.cc", 'const char* x = "socket(1)";  // accept(2), errno\n/* errno\n */\n'), [])
        self.assertEqual(breaches_of("probe/a.cc", 'const char* x = R"(errno)"; int n = 1\'000\'000;\nint e = errno;\n'),
                         [("errno", 2)])


class WordTest(unittest.TestCase):
    def test_errno_is_read_in_sys_only(self):
        self.assertEqual(breaches_of("launcher/cgroup/a.cc", "\n\nint e = errno;\n"), [("errno", 3)])
        self.assertEqual(breaches_of("launcher/sys/a.cc", "int e = errno;\n"), [])
        self.assertEqual(breaches_of("launcher/cgroup/a.cc", "#include <cerrno>\nbool b = err == ENOENT;\n"), [])

    def test_messages_are_printed_in_one_place(self):
        raw = "(void)sys::WriteAll(STDERR_FILENO, text);\n"
        self.assertEqual(breaches_of("launcher/init/a.cc", raw), [("message", 1)])
        self.assertEqual(breaches_of("probe/cli/a.cc", "std::cerr << text;\n"), [("message", 1)])
        self.assertEqual(breaches_of("probe/cli/a.cc", "(void)sys::WriteAll(2, text);\n"), [("message", 1)])
        self.assertEqual(breaches_of("launcher/sys/output.cc", raw), [])
        self.assertEqual(breaches_of("probe/cli/mounts_command.cc", raw), [])

    def test_try_does_not_return_out_of_new(self):
        self.assertEqual(breaches_of("gateway/task/a.cc", "P Make() {\n  return P(new A::B(TRY(C())));\n}\n"), [("leak", 2)])
        self.assertEqual(breaches_of("gateway/task/a.cc", "C c = TRY(D());\nreturn P(new A(c));\n"), [])

    def test_std_filesystem_stays_out_of_the_launcher(self):
        self.assertEqual(breaches_of("launcher/mounts/a.cc", "std::filesystem::path p;\n"), [("filesystem", 1)])
        self.assertEqual(breaches_of("seccomp/a.cc", "#include <filesystem>\n"), [("filesystem", 1)])
        self.assertEqual(breaches_of("gateway/task/a.cc", "#include <filesystem>\n"), [])


class LengthTest(unittest.TestCase):
    def test_files_have_a_longest_length(self):
        self.assertEqual(breaches_of("probe/a.cc", "\n" * lint.MAX_LINES), [])
        self.assertEqual(breaches_of("probe/a.cc", "\n" * (lint.MAX_LINES + 1)), [("length", lint.MAX_LINES + 1)])


class NetworkTest(unittest.TestCase):
    def found(self, text):
        return [breach.rule for breach in lint.check_network("tests/engine/a_test.cc", text)]

    def test_what_starts_an_ai_program_has_a_network_of_its_own(self):
        for start in ('"/x/clis/bin"', 'Text(kState, "/cli-root/usr/bin")', "Run({MAKE_SMALL_ROOT})", "Script(AGY_PATH)",
                      'Put("bin/claude", "x")', '{Program("taskcell"),\n  "run", "a1"}'):
            self.assertEqual(self.found(start), ["network"], start)
            self.assertEqual(self.found("TASKCELL_ENTER_OWN_NETWORK();\n" + start), [])
            self.assertEqual(self.found('#include "tests/engine/task_fixture.h"\n' + start), [])

    def test_the_name_of_one_is_none(self):
        self.assertEqual(self.found('{"executables", "\\"bin/claude\\""}, {Program("taskcell"), "ps"}, "claude"'), [])


class CodeMapTest(unittest.TestCase):
    TABLE = ("| room | holds | may be used by | may not use |\n|---|---|---|---|\n| `launcher/base/` | x | everything | – |\n"
             "| `launcher/sys/` | x | everything | cgroup |\n| `probe/tar engine` | x | gateway | gateway |\n")

    def found(self, text, *present):
        return [(breach.line, breach.text) for breach in lint.check_code_map(text, set(present))]

    def test_a_table_that_is_right_is_no_breach(self):
        self.assertEqual(self.found(self.TABLE, "launcher/base", "launcher/sys", "probe/tar", "probe/engine", "probe"), [])

    def test_a_room_that_is_missing_is_named(self):
        self.assertEqual(self.found(self.TABLE, "seccomp"), [(1, "seccomp is not in the table of rooms")])

    def test_a_room_stands_below_those_it_may_use(self):
        self.assertEqual(self.found(self.TABLE.replace("tar engine", "engine tar")),
                         [(5, "probe/engine may use probe/tar, which stands below it")])

    def test_what_a_room_may_not_use_it_may_not(self):
        self.assertEqual(self.found(self.TABLE.replace("| cgroup |", "| base, cgroup |")),
                         [(4, "launcher/sys may use launcher/base")])


class MainTest(unittest.TestCase):
    def test_an_empty_tree_is_no_success(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(lint.lint(root), ([], 0))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""What an installation and the Debian package hold, and that programs in it find each other wherever it is.

usage: install_test.py BUILD_DIR VERSION [unittest arguments]
"""

import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, VERSION = pathlib.Path(sys.argv[1]), sys.argv[2]
PROGRAMS = {"taskcell", "taskcell-gateway", "taskcell-launch", "taskcell-probe", "taskcell-profile"}
HELPERS = {"taskcell-attacker", "taskcell-breaker", "taskcell-host", "taskcell-init", "taskcell-loop"}
PAGES = {"man1/taskcell.1.gz", "man1/taskcell-launch.1.gz", "man1/taskcell-probe.1.gz", "man5/taskcell-config.5.gz",
         "man1/taskcell-profile.1.gz", "man7/taskcell-security.7.gz", "man8/taskcell-gateway.8.gz"}
ZSH = "share/zsh/site-functions/_taskcell"
INSTALLED = {*(f"bin/{name}" for name in PROGRAMS), *(f"libexec/taskcell/{name}" for name in HELPERS),
             *(f"share/man/{page}" for page in PAGES),
             *(f"lib/systemd/{kind}/taskcell-gateway.service" for kind in ("system", "user")),
             ZSH, "share/bash-completion/completions/taskcell", "share/fish/vendor_completions.d/taskcell.fish"}
# Debian's zsh looks below /usr/local/share for site-functions, and for what packages bring in vendor-completions.
PACKAGED = INSTALLED - {ZSH} | {"share/zsh/vendor-completions/_taskcell", "share/lintian/overrides/taskcell",
                                "share/doc/taskcell/copyright", "share/doc/taskcell/changelog.gz"}
# What a linked program cannot do without on any Debian: dpkg-shlibdeps must have found them.
NEEDED = {"libc6", "libcurl4", "libmicrohttpd12", "libseccomp2", "libsqlite3-0", "libssl3", "libstdc++6", "libtomlplusplus3",
          "passwd"}


def run(*words, **options):
    ran = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **options)
    if ran.returncode != 0:
        raise AssertionError(f"{words}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def files_of(top):
    return {str(path.relative_to(top)) for path in top.rglob("*") if not path.is_dir() or path.is_symlink()}


class Case(unittest.TestCase):
    def setUp(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="taskcell-install-"))
        self.top.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.top)

    def assert_installed(self, top, prefix, files=frozenset(INSTALLED)):
        """Below `top`, for a host where it is found at `prefix`."""
        self.assertEqual(files_of(top), files)
        for path in top.rglob("*"):
            mode = path.lstat().st_mode & 0o7777
            executable = path.is_dir() or str(path.relative_to(top)).startswith(("bin/", "libexec/"))
            self.assertEqual(oct(mode), oct(0o755 if executable else 0o644), path)
        for kind in ("system", "user"):
            unit = (top / f"lib/systemd/{kind}/taskcell-gateway.service").read_text()
            self.assertEqual(re.findall("^ExecStart=(.*)$", unit, re.MULTILINE), [f"{prefix}/bin/taskcell-gateway"])
        for page in PAGES:
            with gzip.open(top / "share/man" / page, "rt", encoding="utf-8") as text:
                self.assertRegex(text.readline(), r"^\.(Dd|so) ", page)

    def assert_works(self, top):
        """Each program starts, and those that need another one find it."""
        for name in PROGRAMS - {"taskcell-profile"}:
            self.assertIn(VERSION, run(top / "bin" / name, "--version"))
        # Without its helpers nothing is to be found: the check for them can fail.
        launch = [top / "bin/taskcell-launch", "--check"]
        self.assertNotIn("taskcell-init is neither", self.said(launch))
        (top / "libexec/taskcell/taskcell-init").rename(top / "init")
        self.assertIn("taskcell-init is neither", self.said([top / "bin/taskcell-launch", "--", "true"]))
        (top / "init").rename(top / "libexec/taskcell/taskcell-init")
        self.assertNotIn("taskcell-init is neither", self.said([top / "bin/taskcell-launch", "--", "true"]))

    @staticmethod
    def said(words):
        ran = subprocess.run(words, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        return ran.stdout + ran.stderr


class InstallTest(Case):
    def test_into_a_directory_for_a_package(self):
        run("cmake", "--install", BUILD, "--prefix", "/usr", env={**os.environ, "DESTDIR": str(self.top)}, umask=0o022)
        self.assert_installed(self.top / "usr", "/usr")
        self.assertEqual({path.name for path in self.top.iterdir()}, {"usr"})

    def test_to_any_prefix(self):
        prefix = self.top / "opt/taskcell"
        run("cmake", "--install", BUILD, "--prefix", prefix, umask=0o022)
        self.assert_installed(prefix, prefix)
        self.assert_works(prefix)


class PackageCase(Case):
    @classmethod
    def setUpClass(cls):
        made = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="taskcell-package-")))
        run("cpack", "--config", BUILD / "CPackConfig.cmake", "-D", f"CPACK_PACKAGE_DIRECTORY={made}", umask=0o077)
        [cls.package] = made.glob("*.deb")

    def field(self, name):
        return run("dpkg-deb", "--field", self.package, name).strip()


class PackageTest(PackageCase):
    def test_holds_what_an_installation_has(self):
        run("dpkg-deb", "--extract", self.package, self.top / "root")
        self.assert_installed(self.top / "root/usr", "/usr", PACKAGED)
        self.assertEqual({path.name for path in (self.top / "root").iterdir()}, {"usr"})
        owners = {line.split()[1] for line in run("dpkg-deb", "--contents", self.package).splitlines()}
        self.assertEqual(owners, {"root/root"})
        self.assert_works(self.top / "root/usr")

    def test_says_what_it_is_and_needs(self):
        self.assertEqual((self.field("Package"), self.field("Version")), ("taskcell", VERSION))
        self.assertEqual(self.package.name, f"taskcell_{VERSION}_{run('dpkg', '--print-architecture').strip()}.deb")
        depends = set(re.findall(r"(?:^|, )([a-z0-9.+-]+)", self.field("Depends")))
        self.assertLessEqual(NEEDED, depends)
        self.assertEqual(self.field("Recommends"), "uidmap, podman | docker.io, dbus-user-session")
        run("dpkg-deb", "--control", self.package, self.top / "control")
        self.assertEqual({path.name for path in (self.top / "control").iterdir()},
                         {"control", "md5sums", "postinst", "prerm", "postrm"})  # no conffiles: nothing is in /etc
        with tempfile.TemporaryDirectory() as out:
            run("dpkg-deb", "--extract", self.package, out)
            with gzip.open(f"{out}/usr/share/doc/taskcell/changelog.gz", "rt") as log:
                self.assertTrue(log.readline().startswith(f"taskcell ({VERSION}) "))



class LintianTest(PackageCase):
    def test_finds_nothing(self):
        if shutil.which("lintian") is None and not os.environ.get("TASKCELL_TEST_MUST_RUN"):
            print("Skipped: lintian is not installed")
            return
        said = run("lintian", "--allow-root", "--tag-display-limit", "0", "--fail-on", "error,warning", self.package)
        self.assertEqual(said, "")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])

// Attacks from inside a native cell: each payload is first shown to work outside (control), then
// fails inside in exactly one way; the host guard shows that nothing is left (aftermath).
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;
using testing::Not;

// Prints the errno name of what `body` raises, or "done".
std::string Try(const std::string& body) {
  return "import ctypes, errno, os, socket, sys\n"
         "libc = ctypes.CDLL(None, use_errno=True)\n"
         "def call(*a):\n"
         "  r = libc.syscall(*a)\n"
         "  if r < 0: raise OSError(ctypes.get_errno(), '')\n"
         "  return r\n"
         "try:\n"
         "  " +
         body +
         "\n"
         "  print('done')\n"
         "except OSError as e: print(errno.errorcode[e.errno])\n";
}

// The host's processes with that word among their arguments.
std::vector<pid_t> PidsWith(const std::string& word) {
  std::vector<pid_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string line = test::ReadText(entry.path() / "cmdline");
    if (line.find(word) != std::string::npos) pids.push_back(std::stoi(entry.path().filename()));
  }
  return pids;
}

class NativeAttackTest : public LaunchTest {
 protected:
  void ExpectRefused(const std::string& body, const std::string& answer) {
    SCOPED_TRACE(body);
    Outcome inside = Python(Try(body));
    EXPECT_EQ(inside.out, answer + "\n") << inside.err;
  }
  void ExpectControl(const std::string& body) {
    SCOPED_TRACE(body);
    Outcome outside = PythonOutside(Try(body));
    EXPECT_EQ(outside.out, "done\n") << outside.err;
  }
};

TEST_F(NativeAttackTest, AGroupOfTheCallerOpensNothing) {
  std::string secret = MakeFile("data/secret", "x");
  const std::string shown = "--ro=" + scratch_ + "/data:/data";
  constexpr gid_t kShadow = 42;
  ASSERT_EQ(::chown(secret.c_str(), 0, kShadow), 0);
  ASSERT_EQ(::chmod(secret.c_str(), 0640), 0);
  std::vector<std::string> as_member = {"/usr/bin/setpriv", "--reuid=" + user_->name,
                                        "--regid=" + std::to_string(user_->gid), "--groups=42"};
  auto run = [&](std::vector<std::string> rest) {
    rest.insert(rest.begin(), as_member.begin(), as_member.end());
    return test::Run(rest);
  };
  EXPECT_EQ(run({"/bin/cat", secret}).out, "x");  // control
  Outcome own =
      run({Program("taskcell-launch"), "--userns=own", shown, "--", "/bin/cat", "/data/secret"});
  EXPECT_EQ(own.status, 125);
  EXPECT_THAT(own.err, HasSubstr("supplementary groups 42"));
  TASKCELL_REQUIRE(::access("/usr/bin/newuidmap", X_OK) == 0, "needs newuidmap (package uidmap)");
  for (const char* mode : {"--userns=subids", "--userns=auto"}) {
    Outcome ran = run({Program("taskcell-launch"), mode, shown, "--", "/bin/sh", "-c",
                       "cat /data/secret; cat /etc/shadow"});
    EXPECT_EQ(ran.status, 1);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("/data/secret: Permission denied"));
    EXPECT_THAT(ran.err, HasSubstr("/etc/shadow: No such file"));
  }
}

TEST_F(NativeAttackTest, InitIsNotEvenSeen) {
  // hidepid=invisible: what may not be traced is not there. Init is not dumpable, so not even to
  // its own uid.
  ExpectControl("os.listdir('/proc/self/root')");
  for (const char* what :
       {"os.listdir('/proc/1/root')", "os.listdir('/proc/1/fd')", "os.readlink('/proc/1/exe')",
        "open('/proc/1/mem', 'rb')", "open('/proc/1/environ', 'rb').read()",
        "os.listdir('/proc/1/cwd')", "open('/proc/1/exe', 'wb')"})
    ExpectRefused(what, "ENOENT");
}

TEST_F(NativeAttackTest, NothingCanBeTraced) {
  const std::string trace_child =
      "p = os.fork()\n"
      "  if p == 0: os.execv('/bin/sleep', ['sleep', '5'])\n"
      "  try: call(101, 16, p, 0, 0)\n"
      "  finally: os.kill(p, 9)";
  ExpectControl(trace_child);
  ExpectRefused("call(101, 16, 1, 0, 0)", "EPERM");
  ExpectRefused(trace_child, "EPERM");
}

TEST_F(NativeAttackTest, NoNamespaceAndNoMountCanBeMade) {
  ExpectControl("call(272, 0x10000000)");  // unshare(CLONE_NEWUSER)
  for (const char* flags : {"0x10000000", "0x00020000", "0x02000000", "0x40000000"})
    ExpectRefused(std::string("call(272, ") + flags + ")", "EPERM");
  ExpectRefused("call(165, b'none', b'/tmp', b'cgroup', 0, b'memory')", "EPERM");
  ExpectRefused("call(165, b'none', b'/tmp', b'tmpfs', 0, 0)", "EPERM");
  ExpectRefused("call(166, b'/proc/sys', 2)", "EPERM");
  ExpectRefused("call(155, b'/tmp', b'/tmp')", "EPERM");
}

TEST_F(NativeAttackTest, NoCgroupFileIsThere) {
  ExpectControl("os.listdir('/sys/fs/cgroup')");
  ExpectRefused("os.listdir('/sys/fs/cgroup')", "ENOENT");
  ExpectRefused("os.listdir('/sys')", "ENOENT");
  Outcome ran = Launch({"--", "/bin/cat", "/proc/self/cgroup"});
  EXPECT_THAT(ran.out, Not(HasSubstr("run-")));
}

TEST_F(NativeAttackTest, NothingButTmpAndWorkspaceCanBeWritten) {
  ExpectControl("open('" + scratch_ + "/new', 'w')");
  for (const char* place :
       {"/", "/usr/", "/usr/local/", "/etc/", "/run/", "/var/", "/dev/", "/etc/alternatives/"})
    ExpectRefused(std::string("open('") + place + "new', 'w')", "EROFS");
  ExpectRefused("open('/proc/sys/kernel/core_pattern', 'w')", "EROFS");
  ExpectRefused("open('/proc/sysrq-trigger', 'w')",
                ::access("/proc/sysrq-trigger", F_OK) == 0 ? "EROFS" : "ENOENT");
  ExpectRefused("open('/tmp/new', 'w')", "done");
  ExpectRefused("open('/workspace/new', 'w')", "done");
}

TEST_F(NativeAttackTest, TheHostIsNotReachedByLoopbackOrAbstractSockets) {
  int tcp = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(tcp, reinterpret_cast<struct sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(tcp, 4), 0);
  ASSERT_EQ(::getsockname(tcp, reinterpret_cast<struct sockaddr*>(&address), &size), 0);
  std::string connect =
      "socket.create_connection(('127.0.0.1', " + std::to_string(ntohs(address.sin_port)) + "), 5)";
  ExpectControl(connect);
  ExpectRefused(connect, "ECONNREFUSED");
  ::close(tcp);

  int abstract = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::string text = "taskcell-attack-" + std::to_string(::getpid());
  std::copy(text.begin(), text.end(), name.sun_path + 1);
  socklen_t length =
      static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + 1 + text.size());
  ASSERT_EQ(::bind(abstract, reinterpret_cast<struct sockaddr*>(&name), length), 0);
  ASSERT_EQ(::listen(abstract, 4), 0);
  std::string connect_abstract = "socket.socket(socket.AF_UNIX).connect(b'\\0" + text + "')";
  ExpectControl(connect_abstract);
  ExpectRefused(connect_abstract, "ECONNREFUSED");
  ::close(abstract);

  Outcome interfaces = Launch({"--", "/bin/cat", "/proc/net/dev"});
  EXPECT_EQ(std::count(interfaces.out.begin(), interfaces.out.end(), ':'), 1);
  EXPECT_THAT(interfaces.out, HasSubstr("lo:"));
}

TEST_F(NativeAttackTest, OurProgramsCannotBeOverwritten) {
  std::string launch = Program("taskcell-launch");
  auto written = std::filesystem::last_write_time(launch);
  auto size = std::filesystem::file_size(launch);
  ExpectRefused("open('/proc/1/exe', 'wb')", "ENOENT");
  ExpectRefused("open('/proc/self/exe', 'wb')", "EROFS");
  // The launcher is not among the processes of the cell.
  Outcome ran = Python(
      "import os; print([p for p in os.listdir('/proc') if p.isdigit() and"
      " os.path.exists('/proc/'+p+'/comm') and"
      " 'launch' in open('/proc/'+p+'/comm').read()])");
  EXPECT_EQ(ran.out, "[]\n") << ran.err;
  EXPECT_EQ(std::filesystem::last_write_time(launch), written);
  EXPECT_EQ(std::filesystem::file_size(launch), size);
}

TEST_F(NativeAttackTest, ARootDirectorysLinksRedirectNoMount) {
  std::string canary = scratch_ + "/canary";
  std::filesystem::create_directories(canary + "/sub");
  std::ofstream(canary + "/file") << "untouched";
  auto written = std::filesystem::last_write_time(canary);
  std::string agent = scratch_ + "/agent-dir";
  MakeFile("agent-dir/SOUL.md", "x");
  std::string rootfs = MakeRootfs();
  std::vector<std::string> command = {"--rootfs=" + rootfs, "--agent-dir=" + agent, "--", "/launch",
                                      "--version"};
  Outcome control = Launch(command);
  ASSERT_EQ(control.status, 0) << control.err;
  for (const char* name : {"proc", "dev", "tmp", "workspace", "agent"}) {
    for (const std::string& to : {canary, std::string("../canary"), std::string("etc")}) {
      SCOPED_TRACE(std::string(name) + " -> " + to);
      std::filesystem::remove_all(rootfs + "/" + name);
      std::filesystem::create_directory_symlink(to, rootfs + "/" + name);
      Outcome ran = Launch(command);
      EXPECT_EQ(ran.status, 125);
      EXPECT_THAT(ran.err, HasSubstr(std::string("'/") + name + "'"));
      EXPECT_THAT(ran.err, HasSubstr("symbolic link"));
      std::filesystem::remove(rootfs + "/" + name);
      std::filesystem::create_directory(rootfs + "/" + name);
    }
  }
  EXPECT_EQ(std::filesystem::last_write_time(canary), written);
  EXPECT_TRUE(std::filesystem::is_empty(canary + "/sub"));
}

TEST_F(NativeAttackTest, SocketsFifosAndDevicesAreNoSources) {
  std::filesystem::create_directories(scratch_ + "/tree/deep");
  std::vector<std::string> command = {"--ro=" + scratch_ + "/tree:/tree", "--", "/bin/true"};
  ASSERT_EQ(Launch(command).status, 0);
  ASSERT_EQ(::mkfifo((scratch_ + "/tree/deep/pipe").c_str(), 0666), 0);
  Outcome ran = Launch(command);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("deep/pipe"));
  EXPECT_EQ(Launch({"--ro=/dev/null:/n", "--", "/bin/true"}).status, 125);
}

TEST_F(NativeAttackTest, ASocketOrFifoInARootDirectoryIsNoWayOut) {
  std::string rootfs = MakeRootfs();
  std::filesystem::create_directory(rootfs + "/run");
  std::vector<std::string> command = {"--rootfs=" + rootfs, "--", "/launch", "--version"};
  ASSERT_EQ(Launch(command).status, 0);
  std::string path = rootfs + "/run/daemon";
  int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof name.sun_path);
  path.copy(name.sun_path, path.size());
  ASSERT_EQ(::bind(listener, reinterpret_cast<struct sockaddr*>(&name), sizeof name), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  ExpectControl("socket.socket(socket.AF_UNIX).connect('" + path + "')");
  Outcome ran = Launch(command);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("/run/daemon' is a socket"));
  ::close(listener);
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0666), 0);
  ran = Launch(command);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, HasSubstr("/run/daemon' is a FIFO"));
}

TEST_F(NativeAttackTest, ADeviceInARootDirectoryCannotBeOpened) {
  std::string rootfs = MakeRootfs();
  std::filesystem::create_directory(rootfs + "/usr");
  for (const char* name : {"bin", "lib", "lib64"})
    std::filesystem::create_directory_symlink(std::string("usr/") + name, rootfs + "/" + name);
  ASSERT_EQ(::mknod((rootfs + "/etc/zero").c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  ASSERT_EQ(::chmod((rootfs + "/etc/zero").c_str(), 0666), 0);
  ExpectControl("open('" + rootfs + "/etc/zero')");
  Outcome inside = Python(Try("open('/etc/zero')"), {"--rootfs=" + rootfs, "--ro=/usr"});
  EXPECT_EQ(inside.out, "EACCES\n") << inside.err;
}

// Whoever made what is missing would make it in a root that is the hostile side's.
TEST_F(NativeAttackTest, AMissingMountPointOfARootIsRefusedAndNothingIsMadeInIt) {
  std::string rootfs = MakeRootfs();
  std::string source = MakeFile("source/file", "x");
  for (const char* name : {"", "/proc", "/dev", "/tmp", "/workspace", "/agent"})
    ASSERT_EQ(::chown((rootfs + name).c_str(), user_->uid, user_->gid), 0);
  for (const char* name : {"proc", "dev", "tmp", "workspace", "agent"}) {
    SCOPED_TRACE(name);
    std::string place = rootfs + "/" + name;
    ASSERT_EQ(::rmdir(place.c_str()), 0);
    Outcome ran = Launch({"--rootfs=" + rootfs, "--ro=" + scratch_ + "/source:/agent", "--",
                          "/launch", "--version"});
    EXPECT_EQ(ran.status, 125);
    EXPECT_THAT(ran.err, HasSubstr(std::string("has no '/") + name + "'"));
    EXPECT_FALSE(std::filesystem::exists(place));
    EXPECT_EQ(PythonOutside("import os; os.mkdir('" + place + "'); print('made')").out, "made\n")
        << "control";
  }
  Outcome whole = Launch(
      {"--rootfs=" + rootfs, "--ro=" + scratch_ + "/source:/agent", "--", "/launch", "--version"});
  EXPECT_EQ(whole.status, 0) << whole.err;
}

// A name with a line of its own in it, and what a terminal would take for commands.
TEST_F(NativeAttackTest, HostileFileNamesReachNoTerminal) {
  const std::string hostile = "x\x1b]0;owned\x07\ntaskcell-launch: all is well\xff";
  std::string directory = scratch_ + "/names";
  std::filesystem::create_directories(directory);
  ASSERT_EQ(::mkfifo((directory + "/" + hostile).c_str(), 0666), 0);
  std::string rootfs = MakeRootfs();
  ASSERT_EQ(::mkfifo((rootfs + "/" + hostile).c_str(), 0666), 0);
  Outcome control = test::Run({"/usr/bin/find", directory, "-type", "p"});
  EXPECT_THAT(control.out, HasSubstr("\x1b]0;owned")) << "control";
  const std::vector<std::vector<std::string>> launches = {
      {"--ro=" + directory + ":/in", "--", "/bin/true"},
      {"--rootfs=" + rootfs, "--", "/launch", "--version"},
      {"--ro=" + directory + "/" + hostile + ":/in", "--", "/bin/true"},
      {"--chdir=/" + hostile, "--", "/bin/true"},
      {"--", "/no/" + hostile},
      {"--" + hostile, "/bin/true"},
      {"--hostname=" + hostile, "/bin/true"},
      {"--report=/no/" + hostile, "/bin/true"},
  };
  for (const std::vector<std::string>& arguments : launches) {
    Outcome ran = Launch(arguments);
    SCOPED_TRACE(ran.err);
    EXPECT_GE(ran.status, 125);
    EXPECT_EQ(ran.err.find_first_of("\x1b\x07\xff"), std::string::npos);
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
  }
}

TEST_F(NativeAttackTest, AHostileEnvironmentReachesNeitherLauncherNorCell) {
  RunOptions options;
  options.environment = {"LD_PRELOAD=/no/such/library.so",
                         "LD_AUDIT=/no/such/audit.so",
                         "LD_LIBRARY_PATH=/tmp",
                         "GLIBC_TUNABLES=glibc.malloc.check=3",
                         "GCONV_PATH=/tmp",
                         "LOCPATH=/tmp",
                         "TASKCELL_SECRET=canary",
                         "IFS=/",
                         "BASH_ENV=/tmp/x",
                         "ENV=/tmp/x",
                         "PYTHONPATH=/tmp",
                         "PATH=/tmp/hostile"};
  options.user = user_;
  EXPECT_THAT(test::Run({"/bin/cat", "/proc/self/environ"}, options).err,
              HasSubstr("cannot be preloaded"))
      << "control";
  Outcome ran = Launch({"--", "/usr/bin/env"}, options);
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(
      ran.out,
      "PATH=/usr/local/bin:/usr/bin:/bin\nHOME=/tmp/home\nTMPDIR=/tmp\nLANG=C.UTF-8\nTZ=UTC\n");
}

TEST_F(NativeAttackTest, AJobThatClosesEverythingAndLeavesIsTakenAlong) {
  const std::string marker = "left-by-" + scratch_.substr(scratch_.rfind('-') + 1);
  const std::string leave =
      "import os, time\n"
      "if os.fork() == 0:\n"
      "  os.setsid()\n"
      "  if os.fork() == 0:\n"
      "    os.closerange(0, 1024)\n"
      "    time.sleep(1000)\n"
      "  os._exit(0)\n"
      "os.wait()\n"
      "os.closerange(0, 1024)\n"
      "os._exit(7)\n";
  const std::vector<std::string> command = {"/usr/bin/python3", "-c", leave, marker};
  std::vector<std::string> inside = command;
  inside.insert(inside.begin(), "--");
  EXPECT_EQ(Launch(inside).status, 7);
  EXPECT_THAT(PidsWith(marker), testing::IsEmpty());
  RunOptions options;
  options.user = user_;
  EXPECT_EQ(test::Run(command, options).status, 7);  // control
  std::vector<pid_t> left = PidsWith(marker);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(::kill(left[0], SIGKILL), 0);
}

// Two cells of one user have one kernel uid: outside of cells that is enough to trace.
TEST_F(NativeAttackTest, OneCellOfAUserReachesNoProcessOfAnother) {
  const std::string marker = "victim-of-" + scratch_.substr(scratch_.rfind('-') + 1);
  const std::string flag = scratch_ + "/flag";
  std::filesystem::create_directory(flag);
  std::filesystem::permissions(flag, std::filesystem::perms(0755));
  std::thread other([&] {
    Outcome victim =
        Launch({"--timeout=30s", "--ro=" + flag + ":/flag", "--", "/usr/bin/python3", "-c",
                "import os, time\n"
                "while not os.path.exists('/flag/done'): time.sleep(0.02)",
                marker});
    EXPECT_EQ(victim.status, 0) << victim.err;
  });
  const std::string find =
      "import glob, time\n"
      "pid = 0\n"
      "end = time.time() + 5\n"
      "while not pid and time.time() < end:\n"
      "  for name in glob.glob('/proc/[0-9]*/cmdline'):\n"
      "    try: words = open(name, 'rb').read().split(b'\\0')\n"
      "    except OSError: continue\n"
      "    if b'" +
      marker + "' in words and b'/flag/done' in words[2]: pid = int(name.split('/')[2])\n";
  Outcome control = PythonOutside(find + Try("call(101, 16, pid, 0, 0)"));  // PTRACE_ATTACH
  EXPECT_EQ(control.out, "done\n") << control.err;
  Outcome inside = Python(
      "import ctypes, errno, os\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "seen = set()\n"
      "for pid in list(range(1, 400)) + [int(p) for p in os.listdir('/proc') if p.isdigit()]:\n"
      "  for number, more in ((101, (16, pid, 0, 0)), (310, (pid, 0, 0, 0, 0, 0))):\n"
      "    r = libc.syscall(number, *more)\n"
      "    seen.add('done' if r >= 0 else errno.errorcode[ctypes.get_errno()])\n"
      "print(sorted(seen), sorted(p for p in os.listdir('/proc') if p.isdigit()))\n");
  EXPECT_EQ(inside.out, "['EPERM'] ['2']\n") << inside.err;
  MakeFile("flag/done", "");
  other.join();
}

}  // namespace
}  // namespace taskcell::test

// What happened to other runtimes, re-created on this one: what of their lists no payload of
// taskcell-probe attack tries. A directory outside of the root must stay as it is in all of them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string Content(const std::string& path) {
  return sys::ReadFile(AT_FDCWD, path, 64U << 20U).value();
}

class IncidentTest : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    canary_ = scratch_ + "/canary";
    fs::create_directories(canary_ + "/b/c");
    std::ofstream(canary_ + "/file") << "untouched";
    ASSERT_EQ(::chown(canary_.c_str(), user_->uid, user_->gid), 0);
    before_ = Look();
    pattern_ = Content("/proc/sys/kernel/core_pattern");
    rootfs_ = MakeRootfs();
    fs::create_directory(rootfs_ + "/usr");
    for (const char* name : {"bin", "lib", "lib64"})
      fs::create_symlink(Text("usr/", name), rootfs_ + "/" + name);
  }

  void TearDown() override {
    if (!canary_.empty()) {
      EXPECT_EQ(Look(), before_) << "the directory outside";
      EXPECT_EQ(Content("/proc/sys/kernel/core_pattern"), pattern_);
    }
    LaunchTest::TearDown();
  }

  // Names, modes and times of all that is there.
  std::string Look() const {
    std::string text;
    std::vector<std::string> paths = {canary_};
    for (const auto& entry : fs::recursive_directory_iterator(canary_))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      struct stat info = {};
      EXPECT_EQ(::lstat(path.c_str(), &info), 0);
      text += Text(path, " ", info.st_mode, " ", info.st_uid, " ", info.st_mtim.tv_sec, ".",
                   info.st_mtim.tv_nsec, "\n");
    }
    return text + Content(canary_ + "/file");
  }

  // In the root directory, with the host's programs in it.
  Outcome InRoot(const std::string& script) const {
    return Launch({"--rootfs=" + rootfs_, "--ro=/usr", "--", "/bin/sh", "-c", script});
  }

  std::string canary_;
  std::string before_;
  std::string pattern_;
  std::string rootfs_;
};

// Masks were bound from the root's own null device.
TEST_F(IncidentTest, CVE_2025_31133_WhateverTheRootHasForItsNullDeviceMasksStayWhole) {
  const std::string null = rootfs_ + "/dev/null";
  const std::function<void()> kinds[] = {
      [] {},
      [&] { fs::create_symlink("/proc/sys/kernel/core_pattern", null); },
      [&] { fs::create_symlink(canary_ + "/file", null); },
      [&] { std::ofstream(null) << "plain"; },
      [&] { ASSERT_EQ(::mknod(null.c_str(), S_IFCHR | 0666, makedev(1, 1)), 0); },
  };
  for (const auto& make : kinds) {
    fs::remove(null);
    make();
    Outcome ran = InRoot("stat -c '%F %t:%T' /dev/null /proc/keys; echo x >/dev/null");
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.out, "character special file 1:3\ncharacter special file 1:3\n");
  }
  fs::remove(null);
  ASSERT_EQ(::mkfifo(null.c_str(), 0666), 0);
  Outcome refused = InRoot("true");
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.err, HasSubstr("/dev/null' is a FIFO"));
}

// Devices were made through links in the root's /dev.
TEST_F(IncidentTest, CVE_2026_41579_LinksInTheRootsDevLeadNoDeviceElsewhere) {
  for (const char* name : {"null", "zero", "full", "tty", "random", "urandom", "console", "ptmx",
                           "fd", "stdin", "stdout", "shm", "mqueue", "pts"})
    fs::create_symlink(canary_ + "/" + name, rootfs_ + "/dev/" + name);
  Outcome ran = InRoot("stat -c %F /dev/null /dev/pts /dev/shm && ls /dev/console 2>&1");
  EXPECT_THAT(ran.out, testing::StartsWith("character special file\ndirectory\ndirectory\n"));
  EXPECT_THAT(ran.out, HasSubstr("No such file"));
}

// The same with something of one's own to be mounted there: no plan has it.
TEST_F(IncidentTest, CVE_2026_41579_NothingElseIsMountedAtOrBelowDev) {
  fs::remove(rootfs_ + "/dev");
  fs::create_symlink(canary_, rootfs_ + "/dev");
  for (const std::string& option :
       {std::string("--tmpfs=/dev:1M"), std::string("--tmpfs=/dev/b:1M"),
        "--ro=" + scratch_ + ":/dev"}) {
    Outcome ran = Launch({"--rootfs=" + rootfs_, option, "--", "/launch", "--version"});
    EXPECT_EQ(ran.status, 125) << option;
    EXPECT_THAT(ran.err, HasSubstr("/dev")) << option;
  }
}

// What was written to a file of /proc went to what the root has there.
TEST_F(IncidentTest, CVE_2019_16884_CVE_2019_19921_FilesInTheRootsProcAreNeverWritten) {
  const std::string proc = rootfs_ + "/proc";
  for (const char* name : {"self/attr", "sys/kernel", "sys/user", "1", "thread-self"})
    fs::create_directories(proc + "/" + name);
  const char* kFiles[] = {"self/attr/exec",
                          "self/attr/keycreate",
                          "self/setgroups",
                          "self/uid_map",
                          "self/oom_score_adj",
                          "sys/kernel/core_pattern",
                          "sys/user/max_user_namespaces",
                          "sys/user/max_inotify_instances",
                          "keys",
                          "sysrq-trigger"};
  for (bool linked : {false, true}) {
    for (const char* name : kFiles) {
      const std::string path = proc + "/" + name;
      fs::remove(path);
      if (linked) {
        fs::create_symlink(canary_ + "/file", path);
      } else {
        std::ofstream(path) << "of the root";
        fs::permissions(path, fs::perms(0666));
      }
    }
    Outcome ran = InRoot(
        "stat -f -c %T /proc; cat /proc/sys/user/max_user_namespaces; ls -d /proc/self/attr/exec; "
        "ls -d /proc/1 2>&1; true");
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, testing::StartsWith("proc\n0\n"));
    EXPECT_THAT(ran.out, HasSubstr("'/proc/1': No such file")) << "process 1 is hidden";
    for (const char* name : kFiles) {
      if (linked) continue;
      EXPECT_EQ(Content(proc + "/" + name), "of the root") << name;
    }
  }
}

// Masks and policies of security modules were gone round by links at the top of the root. Nothing
// of a cell is mounted at /sys.
TEST_F(IncidentTest, CVE_2023_27561_CVE_2023_28642_LinksAtTheTopLeadNoMountElsewhere) {
  fs::create_symlink(canary_, rootfs_ + "/sys");
  Outcome ran = InRoot("ls /sys/ 2>&1; stat -f -c %T /proc");
  EXPECT_THAT(ran.out, HasSubstr("No such file"));
  EXPECT_THAT(ran.out, HasSubstr("proc\n")) << ran.err;
  fs::remove(rootfs_ + "/etc");
  fs::create_symlink(canary_, rootfs_ + "/etc");
  const std::string source = MakeFile("source/file", "x");
  UniqueFd data = sys::Open(source, O_RDONLY).value();
  RunOptions options;
  options.in_child = [&] {
    if (!sys::PlaceDescriptor(data.get(), 99).ok()) ::_exit(90);
  };
  for (const std::string& option :
       {"--ro=" + scratch_ + "/source:/sys/b", std::string("--tmpfs=/etc/b:1M"),
        "--ro=" + source + ":/etc/file", std::string("--file=/etc/file:99"),
        std::string("--file=/etc/new:99")}) {
    Outcome refused =
        Launch({"--rootfs=" + rootfs_, option, "--", "/launch", "--version"}, options);
    EXPECT_EQ(refused.status, 125) << option;
  }
  ran = Launch({"--rootfs=" + rootfs_, "--", "/launch", "--version"});
  EXPECT_EQ(ran.status, 0) << "nothing is mounted there unasked: " << ran.err;
  fs::remove(rootfs_ + "/proc");
  fs::create_symlink("etc", rootfs_ + "/proc");
  EXPECT_EQ(InRoot("true").status, 125);
}

// Mount points were made through a link above them.
TEST_F(IncidentTest, CVE_2026_87766_NoMountPointIsFoundOrMadeThroughALinkAboveIt) {
  const std::string source = MakeFile("source/file", "x");
  const std::string top = rootfs_ + "/a";
  const std::function<void()> links[] = {
      [&] { fs::create_symlink(canary_, top); },
      [&] { fs::create_symlink("../canary", top); },
      [&] {
        fs::create_symlink("one", top);
        fs::create_symlink("two", rootfs_ + "/one");
        fs::create_symlink(canary_, rootfs_ + "/two");
      },
  };
  UniqueFd data = sys::Open(source, O_RDONLY).value();
  for (const auto& make : links) {
    fs::remove(top);
    make();
    for (const std::string& option :
         {"--ro=" + scratch_ + "/source:/a/b/c", "--ro=" + source + ":/a/file",
          "--ro=" + source + ":/a/b/new", std::string("--tmpfs=/a/b/c:1M"),
          "--bind-rw=" + scratch_ + "/source:/a/b", std::string("--file=/a/file:99")}) {
      SCOPED_TRACE(option);
      RunOptions options;
      options.in_child = [&] {
        if (!sys::PlaceDescriptor(data.get(), 99).ok()) ::_exit(90);
      };
      Outcome ran = Launch({"--rootfs=" + rootfs_, option, "--", "/launch", "--version"}, options);
      EXPECT_EQ(ran.status, 125);
      EXPECT_THAT(ran.err, HasSubstr("symbolic link"));
    }
  }
}

// Set-user-ID programs and such with capabilities, whole in a root directory that is hostile.
TEST_F(IncidentTest, ProgramsOfARootThatTakePrivilegeGetNone) {
  const std::string program = Program("taskcell-attacker");
  for (const char* name : {"setuid", "capable"}) fs::copy_file(program, rootfs_ + "/" + name);
  ASSERT_EQ(::chmod((rootfs_ + "/setuid").c_str(), 06755), 0);
  struct vfs_cap_data data = {};
  data.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  data.data[0].permitted = 1U << CAP_NET_RAW;
  const std::string capable = rootfs_ + "/capable";
  ASSERT_EQ(::setxattr(capable.c_str(), XATTR_NAME_CAPS, &data, XATTR_CAPS_SZ_2, 0), 0);
  RunOptions outside;
  outside.user = user_;
  EXPECT_EQ(test::Run({rootfs_ + "/setuid", "--report-privilege"}, outside).out, "euid 0 capable");
  EXPECT_EQ(test::Run({capable, "--report-privilege"}, outside).out,
            Text("euid ", user_->uid, " capable"));
  for (const char* name : {"/setuid", "/capable"}) {
    Outcome ran = Launch({"--rootfs=" + rootfs_, "--", name, "--report-privilege"});
    EXPECT_EQ(ran.out, "euid 1000 powerless") << name << ran.err;
  }
  Outcome copied = InRoot(
      "cp -p /setuid /capable /tmp && /tmp/setuid --report-privilege; echo; "
      "/tmp/capable --report-privilege; echo; cp /setuid /tmp/new && chmod u+s /tmp/new 2>&1");
  EXPECT_THAT(copied.out, testing::StartsWith("euid 1000 powerless\neuid 1000 powerless\n"))
      << copied.err;
  EXPECT_THAT(copied.out, HasSubstr("not permitted"));
}

// Every descriptor of a process that was started carelessly leads to the host's root.
class LeakTest : public IncidentTest {
 protected:
  static constexpr int kFirst = 3;
  static constexpr int kLast = 1023;

  // In a working directory that is reached by one of them.
  static RunOptions Leaking(const std::string& directory) {
    RunOptions options;
    options.in_child = [directory] {
      struct rlimit limit = {};
      if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(90);
      limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, kLast + 64);  // with room for its own
      if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(91);
      int root = ::open("/", O_RDONLY | O_DIRECTORY);  // NOLINT(android-cloexec-open): the leak
      for (int fd = kFirst; fd <= kLast; ++fd) {
        // NOLINTNEXTLINE(android-cloexec-dup2): the leak
        if (::dup2(root, fd) != fd) ::_exit(92);
      }
      if (::chdir(directory.c_str()) != 0) ::_exit(93);
    };
    return options;
  }
};

TEST_F(LeakTest, CVE_2024_21626_NoDescriptorAndNoWorkingDirectoryComesIn) {
  // 3 is the listing itself.
  const std::string look =
      "import os; print(sorted(os.listdir('/proc/self/fd'), key=int)); print(os.getcwd())";
  for (const char* directory : {"/proc/self/fd/7", "/proc/self/fd/7/../../.."}) {
    SCOPED_TRACE(directory);
    RunOptions as_user = Leaking(directory);
    as_user.user = user_;
    Outcome outside = test::Run({"/usr/bin/python3", "-c", look}, as_user);
    EXPECT_THAT(outside.out, HasSubstr("'7', '8',")) << "control: " << outside.err;
    EXPECT_THAT(outside.out, HasSubstr("'1022', '1023'"));
    EXPECT_THAT(outside.out, testing::EndsWith("\n/\n"));
    Outcome ran = Launch({"--", "/usr/bin/python3", "-c", look}, Leaking(directory));
    EXPECT_EQ(ran.out, "['0', '1', '2', '3']\n/workspace\n") << ran.err;
  }
}

TEST_F(LeakTest, CVE_2024_21626_NoWorkingDirectoryIsReachedByADescriptor) {
  const RunOptions leaking = Leaking("/");
  const Outcome control = Launch({"--chdir=/proc/self/attr", "--", "/bin/true"}, leaking);
  EXPECT_EQ(control.status, 0) << control.err;
  std::vector<std::string> directories = {"/proc/self/fd/7/../../..", "/proc/self/fd/1023"};
  constexpr int kPastInits = 16;  // init has some open while it goes there
  for (int fd = 0; fd <= kPastInits; ++fd) directories.push_back(Text("/proc/self/fd/", fd));
  directories.insert(directories.end(), {"/proc/self/fd/7/etc", "/proc/1/fd/7", "/proc/1/cwd"});
  for (const std::string& directory : directories) {
    SCOPED_TRACE(directory);
    const Outcome ran = Launch({"--chdir=" + directory, "--", "/bin/echo", "ran"}, leaking);
    EXPECT_EQ(ran.status, 125) << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("'" + directory + "'"));
  }
}

// A root whose first program is the runtime itself, by the name it has for whoever executes it.
TEST_F(IncidentTest, CVE_2019_5736_AScriptForTheRuntimeItselfGetsNowhere) {
  const std::string script = MakeFile("script", "#!/proc/self/exe\n");
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  const std::string init = Content(Program("taskcell-init"));
  const std::string launcher = Content(Program("taskcell-launch"));
  // The first file opens, so that it would be seen if another did.
  Outcome ran = Launch({"--ro=" + script + ":/script", "--", "/bin/sh", "-c",
                        "/script; try() { (: 3>>$1) 2>/dev/null && echo opened $1; }; "
                        "try /tmp/control; i=0; while [ $i -lt 200 ]; do i=$((i + 1)); "
                        "for p in 1 $$ self; do try /proc/$p/exe; done; done; echo tried"});
  EXPECT_EQ(ran.out, "opened /tmp/control\ntried\n") << ran.err;
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(Launch({"--ro=" + script + ":/script", "--", "/script"}).status, 126);
  EXPECT_EQ(Content(Program("taskcell-init")), init);
  EXPECT_EQ(Content(Program("taskcell-launch")), launcher);
}

}  // namespace
}  // namespace taskcell::test

// A /proc of the host's in which somebody mounted something of their own (CVE-2019-16884,
// CVE-2019-19921, CVE-2025-52881): what is meant for the kernel's files goes to theirs, and what is
// believed is told by theirs. In a mount namespace of each test's own.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <set>

#include "launcher/base/text.h"
#include "tests/support/count_calls.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr char kUntouched[] = "untouched";

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool EnterMountNamespace(unsigned long propagation) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | propagation, nullptr) == 0;
}

// A name of /proc, and what is mounted there. The links "self" and "exe" are covered themselves.
struct Cover {
  const char* name;
  const char* target;
  const char* source;  // below the scratch directory
};

// What every cover shows is this: files the user may write, for each that the launcher uses.
constexpr const char* kFiles[] = {
    "self/uid_map",
    "self/gid_map",
    "self/setgroups",
    "self/mountinfo",
    "self/cgroup",
    "self/status",
    "self/attr/exec",
    "self/fdinfo/3",
    "self/ns/user",
    "self/exe",
    "sys/kernel/core_pattern",
    "sys/user/max_user_namespaces",
    "sys/user/max_inotify_instances",
    "sys/user/max_inotify_watches",
};

class HostProcTest : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (const char* name : kFiles) {
      const std::string file = MakeFile(Text("fake/", name), kUntouched);
      ASSERT_EQ(::chmod(file.c_str(), 0666), 0);
    }
    fs::create_directory(At("fake/self/fd"));
    for (int fd = 0; fd < 64; ++fd)
      fs::create_symlink(At("fake/sys/kernel/core_pattern"), Text(At("fake/self/fd/"), fd));
    fs::create_symlink(At("fake/self"), At("link"));
  }

  void TearDown() override {
    if (!scratch_.empty()) ExpectUntouched();
    LaunchTest::TearDown();
  }

  void ExpectUntouched() const {
    for (const char* name : kFiles) EXPECT_EQ(Content(At(Text("fake/", name))), kUntouched) << name;
  }

  std::string At(std::string_view name) const { return Text(scratch_, "/", name); }

  // By descriptors, so that a link is itself meant. Read-write, as an attacker would have it.
  static bool Bind(const std::string& source, const std::string& target) {
    const int from = ::open(source.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    const int to = ::open(target.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
    return from >= 0 && to >= 0 &&
           ::mount(Text("/proc/self/fd/", from).c_str(), Text("/proc/self/fd/", to).c_str(),
                   nullptr, MS_BIND, nullptr) == 0;
  }

  // Ends the process unless what is found by that name from now on is the attacker's.
  void Mount(const Cover& cover) const {
    // With the number: /proc/self is a link to it, and the directory is meant but where the link
    // is.
    std::string target = cover.target;
    const std::string self = Text("/proc/", ::getpid());
    if (target.starts_with("/proc/self/")) target.replace(0, 10, self);
    if (target == "/proc/pid") target = self;
    struct stat proc = {};
    struct stat found = {};
    if (::stat("/proc", &proc) != 0 || !Bind(At(cover.source), target)) ::_exit(90);
    if (::lstat(target.c_str(), &found) != 0 || found.st_dev == proc.st_dev) ::_exit(91);
  }

  // taskcell-launch as the user (or root, as nobody), in a namespace where `prepare` was done as
  // root before, in the same process.
  Outcome LaunchAfter(const std::function<void()>& prepare, bool as_root,
                      const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = Command(arguments);
    if (!as_root) {
      const std::vector<std::string> become = {"/usr/bin/setpriv", Text("--reuid=", user_->uid),
                                               Text("--regid=", user_->gid), "--clear-groups"};
      argv.insert(argv.begin(), become.begin(), become.end());
    }
    RunOptions options;
    options.in_child = [&] {
      if (!as_root) EnterDelegatedCgroup(user_->uid);
      if (!EnterMountNamespace(MS_PRIVATE)) ::_exit(92);
      prepare();
    };
    return test::Run(argv, options);
  }
};

class CoveredProcTest : public HostProcTest, public testing::WithParamInterface<Cover> {};

TEST_P(CoveredProcTest, CVE_2025_52881_ThereIsNoCell) {
  for (bool as_root : {false, true}) {
    SCOPED_TRACE(as_root ? "as root" : "as the user");
    for (const char* proc : {"--proc=full", "--proc=pids"}) {
      const std::vector<std::string> arguments = {"--timeout=60s", proc, "--", "/bin/echo", "ran"};
      Outcome ran = LaunchAfter([&] { Mount(GetParam()); }, as_root, arguments);
      EXPECT_EQ(ran.status, 125) << ran.err;
      EXPECT_EQ(ran.out, "");
      EXPECT_THAT(ran.err,
                  testing::AnyOf(HasSubstr("something is mounted over '/proc"),
                                 HasSubstr("'/proc' is not the kernel's process file system")));
    }
  }
}

TEST_P(CoveredProcTest, TheCheckSaysSo) {
  Outcome ran = LaunchAfter([&] { Mount(GetParam()); }, true, {"--check"});
  EXPECT_EQ(ran.status, 1) << ran.err;
  EXPECT_THAT(ran.out, testing::StartsWith("FAIL  proc "));
}

INSTANTIATE_TEST_SUITE_P(
    Each, CoveredProcTest,
    testing::Values(Cover{"Whole", "/proc", "fake"}, Cover{"Self", "/proc/pid", "fake/self"},
                    Cover{"TheLinkSelf", "/proc/self", "link"},
                    Cover{"UidMap", "/proc/self/uid_map", "fake/self/uid_map"},
                    Cover{"GidMap", "/proc/self/gid_map", "fake/self/gid_map"},
                    Cover{"Setgroups", "/proc/self/setgroups", "fake/self/setgroups"},
                    Cover{"Mountinfo", "/proc/self/mountinfo", "fake/self/mountinfo"},
                    Cover{"Cgroup", "/proc/self/cgroup", "fake/self/cgroup"},
                    Cover{"Status", "/proc/self/status", "fake/self/status"},
                    Cover{"Attributes", "/proc/self/attr", "fake/self/attr"},
                    Cover{"Descriptors", "/proc/self/fd", "fake/self/fd"},
                    Cover{"DescriptorInformation", "/proc/self/fdinfo", "fake/self/fdinfo"},
                    Cover{"Namespaces", "/proc/self/ns", "fake/self/ns"},
                    Cover{"TheLinkExe", "/proc/self/exe", "fake/self/exe"},
                    Cover{"Sysctls", "/proc/sys", "fake/sys"},
                    Cover{"UserSysctls", "/proc/sys/user", "fake/sys/user"},
                    Cover{"MaxUserNamespaces", "/proc/sys/user/max_user_namespaces",
                          "fake/sys/user/max_user_namespaces"},
                    Cover{"CorePattern", "/proc/sys/kernel/core_pattern",
                          "fake/sys/kernel/core_pattern"}),
    [](const auto& row) { return row.param.name; });

// What an engine or a unit's hardening does is no attack: its masks cover nothing that is used, and
// a part that is mounted where it is anyway is the same part.
TEST_F(HostProcTest, MasksAndPartsOfItselfAreNoneOfThose) {
  const std::vector<std::string> arguments = {"--proc=pids", "--", "/bin/echo", "ran"};
  EXPECT_EQ(LaunchAfter([] {}, false, arguments).out, "ran\n") << "control";
  auto mask = [this] {
    if (!Bind(At("fake/sys/kernel/core_pattern"), "/proc/meminfo") ||
        !Bind(At("fake/sys"), "/proc/irq") || !Bind("/proc/sys/kernel", "/proc/sys/kernel"))
      ::_exit(93);
  };
  // Most kernels give no new /proc then, which is told as what it is.
  Outcome ran = LaunchAfter(mask, true, arguments);
  EXPECT_TRUE(ran.out == "ran\n" || ran.err.find("stage 'proc'") != std::string::npos) << ran.err;
  // The twin: on such a part.
  auto cover = [&] {
    mask();
    Mount({"", "/proc/sys/kernel/core_pattern", "fake/sys/kernel/core_pattern"});
  };
  EXPECT_THAT(LaunchAfter(cover, true, arguments).err,
              HasSubstr("something is mounted over '/proc/sys/kernel/core_pattern'"));
}

// Everything was well as the launcher began. The files of each process it starts are covered
// before that, or the launcher, has made another call; where a cell's mounts follow the host's that
// is so in its namespace, too.
class RacedProcTest : public HostProcTest, public testing::WithParamInterface<bool> {
 protected:
  // Runs in a child of the test. Says on `said` what the launcher does.
  int LaunchAndCover(const std::string& said, const std::vector<const char*>& names) const {
    if (!EnterMountNamespace(MS_SHARED)) return 92;
    std::vector<std::string> argv = Command({"--timeout=60s", "--", "/bin/echo", "ran"});
    auto become = [&] {
      const int output = ::open(said.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      std::vector<char*> pointers;
      for (std::string& argument : argv) pointers.push_back(argument.data());
      pointers.push_back(nullptr);
      const uid_t uid = GetParam() ? 0 : user_->uid;
      const gid_t gid = GetParam() ? 0 : user_->gid;
      if (uid != 0) EnterDelegatedCgroup(uid);
      // NOLINTNEXTLINE(android-cloexec-dup2): the program's own
      if (::dup2(output, 1) == 1 && ::dup2(output, 2) == 2 && ::setgroups(0, nullptr) == 0 &&
          ::setresgid(gid, gid, gid) == 0 && ::setresuid(uid, uid, uid) == 0)
        ::execv(pointers[0], pointers.data());
    };
    std::set<pid_t> seen;
    int covered = 0;
    pid_t launcher = 0;
    CallCount count = CountCalls(become, [&](pid_t pid, uint64_t) {
      if (launcher == 0) launcher = pid;
      std::ifstream children(Text("/proc/", launcher, "/task/", launcher, "/children"));
      for (pid_t child = 0; children >> child;) {
        if (!seen.insert(child).second) continue;
        for (const char* name : names)
          covered += Bind(At(Text("fake/self/", name)), Text("/proc/", child, "/", name)) ? 1 : 0;
      }
    });
    return covered == 0 && !names.empty() ? 93 : count.status;
  }

  std::string Said() const { return Content(At("said")); }
};

TEST_P(RacedProcTest, CVE_2025_52881_CoveredMapsAreNotWritten) {
  EXPECT_EQ(InChild([&] { return LaunchAndCover(At("said"), {}); }), 0) << Said() << "control";
  EXPECT_EQ(Said(), "ran\n");
  for (const std::vector<const char*>& names :
       {std::vector<const char*>{"uid_map", "gid_map", "setgroups"}, {"gid_map"}}) {
    fs::remove(At("said"));
    EXPECT_EQ(InChild([&] { return LaunchAndCover(At("said"), names); }), 125);
    EXPECT_THAT(Said(), HasSubstr("something is mounted over '/proc/"));
    ExpectUntouched();
  }
}

INSTANTIATE_TEST_SUITE_P(Callers, RacedProcTest, testing::Bool(),
                         [](const auto& row) { return row.param ? "Root" : "User"; });

}  // namespace
}  // namespace taskcell::test

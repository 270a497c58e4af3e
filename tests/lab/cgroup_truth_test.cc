// What the kernel answers on a unified hierarchy of its own: the errors and events that the
// launcher's and the probe's diagnoses rest on. Runs as root on a pure cgroup v2 host where nothing
// else uses the hierarchy (the lab's mini variants).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "launcher/sys/process.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr long kCgroup2Magic = 0x63677270;
constexpr uid_t kUser = 1000;
const std::string kMount = "/sys/fs/cgroup";

int ErrnoOf(bool failed) { return failed ? errno : 0; }

// The errno of each call, 0 for success.
int Make(const std::string& path) { return ErrnoOf(::mkdir(path.c_str(), 0755) != 0); }

int Write(const std::string& path, const std::string& text) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  int result = ErrnoOf(::write(fd, text.data(), text.size()) < 0);
  ::close(fd);
  return result;
}

int ReadError(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char byte = 0;
  int result = ErrnoOf(::read(fd, &byte, 1) < 0);
  ::close(fd);
  return result;
}

int CloneInto(const std::string& directory, int flags = O_RDONLY) {
  int fd = ::open(directory.c_str(), flags | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  Result<sys::Cloned> cloned = sys::CloneProcess(0, fd);
  if (cloned.ok() && cloned->in_child) ::_exit(0);
  ::close(fd);
  return cloned.ok() ? 0 : cloned.error().err;
}

std::string Read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The number after `key` in a file of lines "key number"; -1 without such a line.
long Count(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  long number = 0;
  while (file >> word >> number) {
    if (word == key) return number;
  }
  return -1;
}

bool Become(uid_t uid) {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(uid, uid, uid) == 0 &&
         ::setresuid(uid, uid, uid) == 0;
}

int As(uid_t uid, const std::function<int()>& body) {
  return InChild([&] { return Become(uid) ? body() : 250; });
}

class CgroupTruthTest : public testing::Test {
 protected:
  void SetUp() override {
    struct statfs info = {};
    ASSERT_EQ(::statfs(kMount.c_str(), &info), 0);
    TASKCELL_REQUIRE(info.f_type == kCgroup2Magic && ::geteuid() == 0,
                     "needs root and a unified hierarchy");
    ASSERT_EQ(Write(kMount + "/cgroup.subtree_control", "+memory +pids +cpu +cpuset +io"), 0);
    ASSERT_EQ(Make(base_), 0);
  }

  void TearDown() override {
    for (pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
    for (std::size_t i = made_.size(); i > 0; --i) EXPECT_EQ(::rmdir(made_[i - 1].c_str()), 0);
    EXPECT_EQ(::rmdir(base_.c_str()), 0);
  }

  // A new cgroup below the base, which hands `controllers` ("+memory +pids") on to its children.
  std::string New(const std::string& name, const std::string& controllers = "") {
    std::string path = base_ + "/" + name;
    EXPECT_EQ(Make(path), 0);
    made_.push_back(path);
    if (!controllers.empty()) {
      EXPECT_EQ(HandOn(path, controllers), 0);
    }
    return path;
  }

  static int HandOn(const std::string& path, const std::string& controllers) {
    return Write(path + "/cgroup.subtree_control", controllers);
  }

  // The base hands everything on, so that a new cgroup has each controller.
  void HandAllOn() { ASSERT_EQ(HandOn(base_, "+memory +pids +cpu +cpuset +io"), 0); }

  // A process that sleeps in the cgroup.
  void Populate(const std::string& path) {
    pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    children_.push_back(child);
    ASSERT_EQ(Write(path + "/cgroup.procs", std::to_string(child)), 0);
  }

  static void GiveToUser(const std::string& path, const std::vector<std::string>& files) {
    ASSERT_EQ(::chown(path.c_str(), kUser, kUser), 0);
    for (const std::string& file : files)
      ASSERT_EQ(::chown((path + "/" + file).c_str(), kUser, kUser), 0);
  }

  // Runs a child in the cgroup, root or `uid`.
  static int RunIn(const std::string& path, const std::function<int()>& body, uid_t uid = 0) {
    return InChild([&] {
      if (Write(path + "/cgroup.procs", "0") != 0) return 251;
      return uid == 0 || Become(uid) ? body() : 250;
    });
  }

  const std::string base_ = kMount + "/truth";

 private:
  std::vector<std::string> made_;
  std::vector<pid_t> children_;
};

TEST_F(CgroupTruthTest, AControllerThatIsNotOfferedIsEnoent) {
  std::string inner = New("inner");
  EXPECT_EQ(HandOn(inner, "+memory"), ENOENT);
  EXPECT_EQ(ReadError(inner + "/memory.max"), ENOENT);
}

TEST_F(CgroupTruthTest, AnUnknownControllerIsEinvalAlsoAmongOthers) {
  HandAllOn();
  std::string inner = New("inner");
  EXPECT_EQ(HandOn(inner, "+nosuch"), EINVAL);
  EXPECT_EQ(HandOn(inner, "+memory +nosuch"), EINVAL);
  EXPECT_EQ(Read(inner + "/cgroup.subtree_control"), "");
}

TEST_F(CgroupTruthTest, DomainControllersOfAPopulatedCgroupAreEbusy) {
  HandAllOn();
  std::string inner = New("inner");
  Populate(inner);
  EXPECT_EQ(HandOn(inner, "+memory"), EBUSY);
  EXPECT_EQ(HandOn(inner, "+io"), EBUSY);
  EXPECT_EQ(Read(inner + "/cgroup.type"), "domain\n");
}

TEST_F(CgroupTruthTest, ThreadedControllersOfAPopulatedCgroupMakeItThreaded) {
  HandAllOn();
  for (const char* controller : {"pids", "cpu", "cpuset"}) {
    SCOPED_TRACE(controller);
    std::string inner = New(std::string("inner-") + controller);
    std::string child = New(std::string("inner-") + controller + "/child");
    Populate(inner);
    EXPECT_EQ(HandOn(inner, std::string("+") + controller), 0);
    EXPECT_EQ(Read(inner + "/cgroup.type"), "domain threaded\n");
    EXPECT_EQ(Read(child + "/cgroup.type"), "domain invalid\n");
    EXPECT_EQ(HandOn(inner, "+memory"), EOPNOTSUPP);
    EXPECT_EQ(Write(child + "/cgroup.procs", "0"), EOPNOTSUPP);
    EXPECT_EQ(CloneInto(child), EOPNOTSUPP);
    EXPECT_EQ(HandOn(inner, std::string("-") + controller), 0);
    EXPECT_EQ(Read(inner + "/cgroup.type"), "domain\n");
  }
}

TEST_F(CgroupTruthTest, AnInnerCgroupHoldsNoProcess) {
  HandAllOn();
  std::string inner = New("inner", "+memory");
  EXPECT_EQ(Write(inner + "/cgroup.procs", "0"), EBUSY);
  EXPECT_EQ(CloneInto(inner), EBUSY);
}

TEST_F(CgroupTruthTest, AControllerInUseBelowIsEbusy) {
  HandAllOn();
  std::string inner = New("inner", "+memory");
  std::string child = New("inner/child", "+memory");
  EXPECT_EQ(HandOn(inner, "-memory"), EBUSY);
  EXPECT_EQ(HandOn(child, "-memory"), 0);
  EXPECT_EQ(HandOn(inner, "-memory"), 0);
}

TEST_F(CgroupTruthTest, AThreadedCgroupDoesNotBecomeADomainAgain) {
  std::string inner = New("inner");
  std::string child = New("inner/child");
  ASSERT_EQ(Write(child + "/cgroup.type", "threaded"), 0);
  EXPECT_EQ(Write(child + "/cgroup.type", "domain"), EINVAL);
  EXPECT_EQ(ReadError(child + "/cgroup.procs"), EOPNOTSUPP);
  EXPECT_EQ(Write(child + "/cgroup.kill", "1"), EOPNOTSUPP);
}

TEST_F(CgroupTruthTest, ARemovedCgroupTakesNobody) {
  std::string path = base_ + "/gone";
  ASSERT_EQ(Make(path), 0);
  int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::rmdir(path.c_str()), 0);
  Result<sys::Cloned> cloned = sys::CloneProcess(0, fd);
  ASSERT_FALSE(cloned.ok());
  EXPECT_THAT(cloned.error().err, AnyOf(ENOENT, ENODEV));
  ::close(fd);
}

TEST_F(CgroupTruthTest, APathDescriptorIsEnoughToBeBornThere) {
  EXPECT_EQ(CloneInto(New("leaf"), O_PATH), 0);
}

TEST_F(CgroupTruthTest, APidsLimitRefusesForksAndIsCountedWhereTheKernelSays) {
  HandAllOn();
  std::string owner = New("owner", "+pids");
  std::string leaf = New("owner/leaf");
  ASSERT_EQ(Write(owner + "/pids.max", "1"), 0);
  int refused = RunIn(leaf, [] {
    pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    return child < 0 ? errno : 0;
  });
  EXPECT_EQ(refused, EAGAIN);
  // Newer kernels count at the limit's owner, older ones where the fork was tried.
  bool at_owner = Read("/sys/kernel/cgroup/features").find("pids_localevents") != std::string::npos;
  EXPECT_EQ(Count(leaf + "/pids.events", "max"), at_owner ? 0 : 1);
  EXPECT_EQ(Count(owner + "/pids.events", "max"), at_owner ? 1 : 0);
}

TEST_F(CgroupTruthTest, AMemoryLimitOfAnAncestorTellsTheLevel) {
  HandAllOn();
  std::string owner = New("owner", "+memory");
  std::string leaf = New("owner/leaf");
  constexpr std::size_t kBytes = 64U << 20U;
  ASSERT_EQ(Write(owner + "/memory.max", "16M"), 0);
  int status = RunIn(leaf, [] {
    void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return memory == MAP_FAILED ? errno : 0;
  });
  EXPECT_EQ(status, 128 + SIGKILL);
  EXPECT_GE(Count(owner + "/memory.events.local", "max"), 1);
  EXPECT_GE(Count(owner + "/memory.events.local", "oom"), 1);
  EXPECT_EQ(Count(leaf + "/memory.events.local", "oom"), 0);
  EXPECT_EQ(Count(leaf + "/memory.events.local", "oom_kill"), 1);
}

// What root in a cgroup namespace rooted at `leaf` is answered when it lifts its own limit, and
// when it moves itself to `outside`; cgroup2 is mounted anew inside, as an engine does.
struct Escape {
  int raise = -1;
  int leave = -1;
};
Escape TryToEscape(const std::string& leaf, const std::string& outside) {
  Escape escape;
  auto attempt = [&](const std::function<int()>& body) {
    return InChild([&] {
      if (Write(leaf + "/cgroup.procs", "0") != 0) return 251;
      if (::unshare(CLONE_NEWCGROUP | CLONE_NEWNS) != 0) return 252;
      return body();
    });
  };
  escape.raise = attempt([] {
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 253;
    if (::mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) != 0) return 254;
    if (::mkdir("/tmp/inside", 0755) != 0) return 254;
    if (::mount("cgroup2", "/tmp/inside", "cgroup2", 0, nullptr) != 0) return 254;
    return Write("/tmp/inside/memory.max", "max");
  });
  escape.leave = attempt([&] { return Write(outside + "/cgroup.procs", "0"); });
  return escape;
}

TEST_F(CgroupTruthTest, OnlyNsdelegateKeepsTheLimitsOfANamespace) {
  HandAllOn();
  std::string leaf = New("leaf");
  std::string outside = New("outside");
  auto remount = [](const char* options) {
    ASSERT_EQ(::mount("cgroup2", kMount.c_str(), nullptr, MS_REMOUNT, options), 0);
  };
  ASSERT_EQ(Write(leaf + "/memory.max", "64M"), 0);
  remount("");
  Escape without = TryToEscape(leaf, outside);
  EXPECT_EQ(without.raise, 0);
  EXPECT_EQ(Read(leaf + "/memory.max"), "max\n");
  EXPECT_EQ(without.leave, 0);
  ASSERT_EQ(Write(leaf + "/memory.max", "64M"), 0);
  remount("nsdelegate");
  Escape with = TryToEscape(leaf, outside);
  remount("");
  EXPECT_EQ(with.raise, EPERM);
  EXPECT_EQ(Read(leaf + "/memory.max"), "67108864\n");
  EXPECT_EQ(with.leave, ENOENT);
}

TEST_F(CgroupTruthTest, MalformedLimitsAreEinval) {
  HandAllOn();
  std::string leaf = New("leaf");
  EXPECT_EQ(Write(leaf + "/memory.max", "10Q"), EINVAL);
  EXPECT_EQ(Write(leaf + "/pids.max", "-1"), EINVAL);
  EXPECT_EQ(Write(leaf + "/cpu.max", "100 100000"), EINVAL);
}

TEST_F(CgroupTruthTest, TheRootCgroupHasNoLimitsAndNoType) {
  for (const char* file : {"memory.max", "pids.max", "cpu.max", "cgroup.type"})
    EXPECT_EQ(ReadError(kMount + "/" + file), ENOENT) << file;
}

TEST_F(CgroupTruthTest, OwningOnlyTheDirectoryAllowsMkdirButNoMove) {
  HandAllOn();
  std::string own = New("own");
  GiveToUser(own, {});
  int answer = RunIn(
      own,
      [&] { return Make(own + "/child") != 0 ? 249 : Write(own + "/child/cgroup.procs", "0"); },
      kUser);
  ASSERT_EQ(::rmdir((own + "/child").c_str()), 0);
  EXPECT_EQ(answer, EACCES);
}

TEST_F(CgroupTruthTest, TheLimitsOfADelegatedCgroupStayRoots) {
  HandAllOn();
  std::string own = New("own");
  GiveToUser(own, {"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"});
  EXPECT_EQ(As(kUser, [&] { return Write(own + "/memory.max", "max"); }), EACCES);
  EXPECT_EQ(As(kUser, [&] { return Write(own + "/pids.max", "max"); }), EACCES);
}

TEST_F(CgroupTruthTest, AProcessFromOutsideNeedsTheCommonAncestor) {
  HandAllOn();
  std::string elsewhere = New("elsewhere");
  std::string own = New("own");
  GiveToUser(own, {"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"});
  EXPECT_EQ(RunIn(
                elsewhere, [&] { return Write(own + "/cgroup.procs", "0"); }, kUser),
            EACCES);
  EXPECT_EQ(RunIn(
                elsewhere, [&] { return CloneInto(own); }, kUser),
            EACCES);
  // From inside, the same user moves and is born below.
  int inside = RunIn(
      own,
      [&] {
        if (Make(own + "/child") != 0) return 249;
        int born = CloneInto(own + "/child");
        return born != 0 ? born : Write(own + "/child/cgroup.procs", "0");
      },
      kUser);
  EXPECT_EQ(::rmdir((own + "/child").c_str()), 0);
  EXPECT_EQ(inside, 0);
}

TEST_F(CgroupTruthTest, ADelegatedCgroupIsLeftBeforeItHandsOnAndNotEnteredAgain) {
  HandAllOn();
  std::string own = New("own");
  GiveToUser(own, {"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"});
  int answer = RunIn(
      own,
      [&] {
        if (HandOn(own, "+memory") != EBUSY) return 240;
        if (Make(own + "/child") != 0) return 241;
        if (Write(own + "/child/cgroup.procs", "0") != 0) return 242;
        if (HandOn(own, "+memory") != 0) return 243;
        return Write(own + "/cgroup.procs", "0");
      },
      kUser);
  EXPECT_EQ(::rmdir((own + "/child").c_str()), 0);
  EXPECT_EQ(answer, EBUSY);
}

TEST_F(CgroupTruthTest, NumberAndDepthOfCgroupsAreCappedByEagain) {
  for (const char* cap : {"cgroup.max.descendants", "cgroup.max.depth"}) {
    std::string inner = New(std::string("inner-") + cap);
    ASSERT_EQ(Write(inner + "/" + cap, "0"), 0);
    EXPECT_EQ(Make(inner + "/child"), EAGAIN) << cap;
  }
}

TEST_F(CgroupTruthTest, AnAncestorsSmallerLimitIsTheOneInForce) {
  HandAllOn();
  std::string owner = New("owner", "+memory");
  std::string leaf = New("owner/leaf");
  ASSERT_EQ(Write(owner + "/memory.max", "16M"), 0);
  EXPECT_EQ(Write(leaf + "/memory.max", "64M"), 0);
  EXPECT_EQ(Read(leaf + "/memory.max"), "67108864\n");
}

}  // namespace
}  // namespace taskcell::test

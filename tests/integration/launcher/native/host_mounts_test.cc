// What mounts of the host and of a cell are to each other: a cover of the host's stays, and nothing
// of a cell's shows outside.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "tests/support/launch.h"
#include "tests/support/syscall_faults.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class HostMountsTest : public LaunchTest {
 protected:
  // Runs `body` in a mount namespace of its own, whose mounts propagate as `flag` says.
  static void InNamespace(unsigned long flag, const std::function<void()>& body) {
    EXPECT_EQ(InChild([&] {
                if (::unshare(CLONE_NEWNS) != 0) return 90;
                if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 91;
                if (::mount(nullptr, "/", nullptr, MS_REC | flag, nullptr) != 0) return 92;
                body();
                return HasFailure() ? 1 : 0;
              }),
              0);
  }

  static std::string Mounts() {
    std::ifstream file("/proc/self/mountinfo");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static RunOptions WithClassicMounts(bool classic) {
    RunOptions options;
    options.in_child = [classic] {
      if (classic && !InstallFaults({{SYS_mount_setattr, ENOSYS}})) ::_exit(93);
    };
    return options;
  }
};

// The caller has no right to take the cover off, and none to be given a mount without it.
TEST_F(HostMountsTest, WhatTheHostCoversStaysCoveredAndIsReadOnly) {
  MakeFile("dir/secret/hidden", "the canary");
  const std::string place = scratch_ + "/dir/secret";
  InNamespace(MS_PRIVATE, [&] {
    ASSERT_EQ(::mount("cover", place.c_str(), "tmpfs", 0, "size=64k,mode=0777"), 0);
    MakeFile("dir/secret/cover", "covered");
    EXPECT_EQ(PythonOutside("open('" + place + "/new', 'w'); print('made')").out, "made\n")
        << "control";
    for (bool classic : {false, true}) {
      SCOPED_TRACE(classic);
      for (const char* ids : {"--userns=own", "--userns=subids"}) {
        if (classic && std::string_view(ids) == "--userns=subids")
          continue;  // no_new_privs is set with the fault
        const Outcome ran =
            Launch({ids, "--ro=" + scratch_ + "/dir:/in", "--", "/bin/sh", "-c",
                    "cat /in/secret/cover; echo; ls /in/secret; cat /in/secret/hidden; "
                    "touch /in/secret/more; umount /in/secret; umount -l /in; "
                    "cat /in/secret/cover; grep -c ' /in/secret ro,nosuid,nodev' "
                    "/proc/self/mountinfo"},
                   WithClassicMounts(classic));
        EXPECT_EQ(ran.out, "covered\ncover\nnew\ncovered1\n") << ran.err;
        EXPECT_THAT(ran.err, HasSubstr("hidden: No such file"));
        EXPECT_THAT(ran.err, HasSubstr("Read-only file system"));
        EXPECT_THAT(ran.out + ran.err, Not(HasSubstr("the canary")));
      }
    }
  });
}

TEST_F(HostMountsTest, NoMountOfACellIsSeenWhereEveryOtherWouldBe) {
  const std::string flag = scratch_ + "/flag";
  const std::string place = scratch_ + "/place";
  fs::create_directory(flag);
  fs::create_directory(place);
  ASSERT_EQ(::chmod(flag.c_str(), 0777), 0);
  InNamespace(MS_SHARED, [&] {
    const std::string before = Mounts();
    EXPECT_EQ(InChild([&] {
                return ::unshare(CLONE_NEWNS) == 0 &&
                               ::mount("seen", place.c_str(), "tmpfs", 0, "size=4k") == 0
                           ? 0
                           : 1;
              }),
              0);
    EXPECT_THAT(Mounts(), HasSubstr(place)) << "control";
    EXPECT_EQ(::umount(place.c_str()), 0);
    ASSERT_EQ(Mounts(), before);
    for (bool classic : {false, true}) {
      SCOPED_TRACE(classic);
      std::thread runs([&] {
        const Outcome ran = Launch(
            {"--timeout=60s", "--userns=own", "--bind-rw=" + flag + ":/flag", "--tmpfs=/more:1M",
             "--", "/bin/sh", "-c", "echo >/flag/up; until [ -e /flag/done ]; do sleep 0.05; done"},
            WithClassicMounts(classic));
        EXPECT_EQ(ran.status, 0) << ran.err;
      });
      EXPECT_TRUE(WaitFor([&] { return fs::exists(flag + "/up"); }));
      EXPECT_EQ(Mounts(), before) << "while it runs";
      MakeFile("flag/done", "");
      runs.join();
      EXPECT_EQ(Mounts(), before) << "afterwards";
      fs::remove(flag + "/up");
      fs::remove(flag + "/done");
    }
  });
}

}  // namespace
}  // namespace taskcell::test

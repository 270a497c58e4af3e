// Processes that make a cell with more rights than it has (CVE-2026-41163): none of them may be
// looked into, or have its descriptors taken, by another process of the caller's uid.
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"
#include "tests/support/count_calls.h"
#include "tests/support/launch.h"
#include "tests/support/syscall_faults.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

constexpr uint64_t kMountCalls[] = {SYS_fsopen,        SYS_fsmount, SYS_open_tree,  SYS_move_mount,
                                    SYS_mount_setattr, SYS_mount,   SYS_pivot_root, SYS_umount2};

// The files of a process that is not dumpable are root's, whoever it runs as (proc(5)).
uid_t OwnerInProc(pid_t pid) {
  struct stat info = {};
  return ::stat(Text("/proc/", pid, "/status").c_str(), &info) == 0 ? info.st_uid : 0;
}

class HelpersTest : public LaunchTest {
 protected:
  void Become(const std::vector<std::string>& argv) const {
    std::vector<std::string> copy = argv;
    std::vector<char*> pointers;
    for (std::string& argument : copy) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    EnterDelegatedCgroup(user_->uid);
    if (::setgroups(0, nullptr) == 0 && ::setresgid(user_->gid, user_->gid, user_->gid) == 0 &&
        ::setresuid(user_->uid, user_->uid, user_->uid) == 0)
      ::execv(pointers[0], pointers.data());
  }
};

TEST_F(HelpersTest, CVE_2026_41163_WhateverMakesAMountCannotBeTraced) {
  MakeFile("agent/SOUL.md", "soul");
  const std::string data = MakeFile("data", "x");
  for (bool by_the_old_call : {false, true}) {
    SCOPED_TRACE(by_the_old_call ? "mount(2)" : "the newer calls");
    std::set<pid_t> makers;
    std::set<pid_t> open_makers;
    std::set<uid_t> owners;
    CallCount count = CountCalls(
        [&] {
          const int fd = ::open(data.c_str(), O_RDONLY | O_CLOEXEC);
          if (::dup2(fd, 9) != 9) ::_exit(90);  // NOLINT(android-cloexec-dup2): given
          if (by_the_old_call && !InstallFaults({{SYS_fsopen, ENOSYS}})) ::_exit(91);
          Become(Command({"--agent-dir=" + scratch_ + "/agent", "--file=/data:9", "--", "/bin/cat",
                          "/agent/SOUL.md", "/data"}));
        },
        [&](pid_t pid, uint64_t number) {
          const uid_t owner = OwnerInProc(pid);
          owners.insert(owner);
          if (std::find(std::begin(kMountCalls), std::end(kMountCalls), number) ==
              std::end(kMountCalls))
            return;
          makers.insert(pid);
          if (owner != 0) open_makers.insert(pid);
        });
    EXPECT_EQ(count.status, 0);
    EXPECT_TRUE(owners.contains(user_->uid)) << "control: one that can be traced is told apart";
    EXPECT_GE(makers.size(), by_the_old_call ? 1U : 3U) << "the cell's child, and two of helpers";
    EXPECT_TRUE(open_makers.empty());
  }
}

// What serves the gateway holds the agents' directories.
TEST_F(HelpersTest, CVE_2026_41163_WhatReadsForTheGatewayCannotBeTraced) {
  for (const char* option : {"--snapshot-fd=9", "--files-fd=9"}) {
    SCOPED_TRACE(option);
    sys::SocketPair pair = sys::MakePacketPair().value();
    sys::Cloned cloned = sys::CloneProcess(0).value();
    if (cloned.in_child) {
      if (sys::PlaceDescriptor(pair.second.get(), 9).ok()) Become(Command({option}));
      sys::ExitNow(99);
    }
    pair.second.Reset();
    // It waits for a request. Before it is executed it is this program, and root's.
    auto is_executed = [&] {
      std::ifstream name(Text("/proc/", cloned.child.pid(), "/comm"));
      std::string text;
      return std::getline(name, text) && text == "taskcell-launch";
    };
    ASSERT_TRUE(WaitFor(is_executed));
    EXPECT_TRUE(WaitFor([&] { return OwnerInProc(cloned.child.pid()) == 0; }));
    EXPECT_TRUE(is_executed());
  }
}

}  // namespace
}  // namespace taskcell::test

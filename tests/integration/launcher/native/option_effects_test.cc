// What options that are parsed elsewhere do to a real cell.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "launcher/base/text.h"
#include "tests/support/hung_files.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using OptionEffectsTest = LaunchTest;

TEST_F(OptionEffectsTest, ATmpfsRunsProgramsOnlyWhereAsked) {
  const std::vector<std::string> script = {"--", "/bin/sh", "-c",
                                           "cp /bin/echo /opt/own/p && /opt/own/p ran from here"};
  std::vector<std::string> runs = script;
  runs.insert(runs.begin(), "--tmpfs=/opt/own:8M:exec");
  Outcome ran = Launch(runs);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "ran from here\n");
  std::vector<std::string> not_run = script;
  not_run.insert(not_run.begin(), "--tmpfs=/opt/own:8M");
  Outcome refused = Launch(not_run);
  EXPECT_EQ(refused.status, 126);
  EXPECT_THAT(refused.err, HasSubstr("Permission denied"));
}

TEST_F(OptionEffectsTest, RootsCellHasTheIdsItIsGivenInsideAndOutside) {
  Outcome ran = LaunchAsRoot({"--uid=70001", "--gid=70002", "--", "/bin/sh", "-c",
                              "id -u; id -G; cat /proc/self/uid_map /proc/self/gid_map"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::vector<std::string_view> words = Words(ran.out);
  EXPECT_EQ(words, (std::vector<std::string_view>{"70001", "70002", "70001", "70001", "1", "70002",
                                                  "70002", "1"}));
}

TEST_F(OptionEffectsTest, NoCellHasAnIdOfRoots) {
  for (const char* option : {"--uid=0", "--gid=0"}) {
    for (const Outcome& ran :
         {Launch({option, "--", "/bin/true"}), LaunchAsRoot({option, "--", "/bin/true"})}) {
      EXPECT_EQ(ran.status, 125) << option;
      EXPECT_THAT(ran.err, HasSubstr(std::string(option).substr(0, 5)));
    }
  }
}

TEST_F(OptionEffectsTest, TwoRootsAreRefused) {
  const std::string rootfs = MakeRootfs();
  Outcome ran = Launch({"--host-root", "--rootfs=" + rootfs, "--", "/launch", "--version"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("--host-root"), HasSubstr("--rootfs")));
  EXPECT_EQ(Launch({"--host-root", "--", "/bin/true"}).status, 0);  // control
}

TEST_F(OptionEffectsTest, AFileOfADescriptorMayHave16MiBAndNotOneByteMore) {
  constexpr std::size_t kMost = std::size_t{16} << 20U;
  const std::string source = MakeFile("source", std::string(kMost, 'x'));
  RunOptions options;
  options.in_child = [&source] {
    const int data = ::open(source.c_str(), O_RDONLY | O_CLOEXEC);
    if (::dup2(data, 99) != 99) ::_exit(90);  // NOLINT(android-cloexec-dup2): for the launcher
  };
  const std::vector<std::string> command = {"--file=/run/given:99", "--", "/usr/bin/wc", "-c",
                                            "/run/given"};
  Outcome ran = Launch(command, options);
  EXPECT_EQ(ran.out, Text(kMost, " /run/given\n")) << ran.err;
  std::ofstream(source, std::ios::app) << 'x';
  ran = Launch(command, options);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("--file '/run/given'"), HasSubstr("16777216")));
}

// The id ranges of the whole host, as a file of root's says.
TEST_F(OptionEffectsTest, ACellIsNeverAnAccountOfTheHost) {
  const std::string ranges = scratch_ + "/ranges";
  auto launch = [&](const std::string& lines) {
    std::ofstream(ranges) << lines;
    RunOptions options;
    options.in_child = [&, user = *user_] {
      for (const char* file : {"/etc/subuid", "/etc/subgid"}) {
        if (!EnterOwnMounts() || ::mount(ranges.c_str(), file, nullptr, MS_BIND, nullptr) != 0)
          ::_exit(90);
      }
      EnterDelegatedCgroup(user.uid);
      if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
          ::setresuid(user.uid, user.uid, user.uid) != 0)
        ::_exit(91);
    };
    return test::Run(
        Command({"--userns=subids", "--", "/bin/cat", "/proc/self/uid_map", "/proc/self/gid_map"}),
        options);
  };
  // daemon, bin and sys have these on every Debian; behind them is one that nobody has.
  Outcome one = launch(user_->name + ":1:3\n" + user_->name + ":2000000000:1\n");
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(Words(one.out),
            (std::vector<std::string_view>{"1000", "2000000000", "1", "1000", "2000000000", "1"}));
  Outcome none = launch(user_->name + ":1:3\n");
  EXPECT_EQ(none.status, 125);
  EXPECT_THAT(none.err, HasSubstr("(subids_in_use)"));
  Outcome shared = launch(user_->name + ":2000000000:5\nother:2000000000:5\n");
  EXPECT_EQ(shared.status, 0);
  EXPECT_THAT(shared.err, HasSubstr("granted to 'other' as well"));
}

}  // namespace
}  // namespace taskcell::test

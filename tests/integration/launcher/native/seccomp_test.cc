// A system call filter of the user's own (--seccomp).
#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "tests/support/launch.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class OwnFilterTest : public LaunchTest {
 protected:
  Outcome With(const std::string& profile, std::vector<std::string> command,
               RunOptions options = {}) const {
    command.insert(command.begin(), {"--seccomp=" + MakeFile("profile.json", profile),
                                     "--report=" + scratch_ + "/report.json", "--"});
    return Launch(command, options);
  }
  std::string Report() const {
    std::ifstream file(scratch_ + "/report.json");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string DefaultProfile() {
    std::ifstream file(TASKCELL_DEFAULT_PROFILE);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(OwnFilterTest, TheDefaultProfileGivenAsOnesOwnIsNoWeaker) {
  Outcome ran = With(DefaultProfile(), {"/bin/echo", "ran"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "ran\n");
  EXPECT_THAT(Report(), HasSubstr(R"("seccomp":{"profile":"own","left_open":[]})"));
  Launch({"--report=" + scratch_ + "/report.json", "--", "/bin/true"});
  EXPECT_THAT(Report(), HasSubstr(R"("seccomp":{"profile":"default","left_open":[]})"));
}

constexpr char kDeniesMkdir[] = R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
  {"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":31},
  {"names":["ptrace"],"action":"SCMP_ACT_ERRNO","errnoRet":38},
  {"names":["reboot"],"action":"SCMP_ACT_KILL_PROCESS"}]})";

TEST_F(OwnFilterTest, WhatItDeniesIsDeniedAndWhatItLeavesOpenIsReported) {
  const std::vector<std::string> script = {
      "/usr/bin/python3", "-c",
      "import os\ntry: os.mkdir('/tmp/d'); print('made')\nexcept OSError as e: print(e.errno)"};
  std::vector<std::string> control = script;
  control.insert(control.begin(), "--");
  EXPECT_EQ(Launch(control).out, "made\n");
  // init makes the job's home after the filter is in force: one that denies it needs none.
  Outcome refused = With(kDeniesMkdir, script);
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.err, HasSubstr("mkdir"));
}

TEST_F(OwnFilterTest, OneThatKillsTheCellsOwnStartIsToldAsThat) {
  Outcome ran = With(
      R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["prlimit64","prctl"],"action":"SCMP_ACT_KILL_PROCESS"}]})",
      {"/bin/true"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("the profile kills what the cell's own start needs"),
                             HasSubstr("SCMP_ACT_LOG")));
}

constexpr char kDeniesTruncate[] = R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
  {"names":["truncate"],"action":"SCMP_ACT_ERRNO","errnoRet":31},
  {"names":["ptrace"],"action":"SCMP_ACT_ERRNO","errnoRet":38},
  {"names":["reboot"],"action":"SCMP_ACT_KILL_PROCESS"}]})";

TEST_F(OwnFilterTest, AWeakerOneRunsAndItsReportNamesWhatItLeavesOpen) {
  const std::vector<std::string> script = {
      "/usr/bin/python3", "-c",
      "import os\ntry: os.truncate('/tmp/none', 0)\nexcept OSError as e: print(e.errno)"};
  std::vector<std::string> control = script;
  control.insert(control.begin(), "--");
  EXPECT_EQ(Launch(control).out, "2\n");
  Outcome ran = With(kDeniesTruncate, script);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "31\n");
  EXPECT_THAT(Report(), AllOf(HasSubstr(R"("profile":"own")"), HasSubstr(R"("unshare NEWUSER")"),
                              HasSubstr(R"("mount")"), HasSubstr(R"("keyctl")"),
                              Not(HasSubstr(R"("ptrace")")), Not(HasSubstr(R"("reboot")")),
                              Not(HasSubstr("ioctl")), Not(HasSubstr("setrlimit")),
                              Not(HasSubstr("write /"))));
}

// The other walls stand without the filter: no capability, no namespace to be had, a keyring apart.
TEST_F(OwnFilterTest, WithoutAnyFilterTheRestOfTheCellHolds) {
  const std::string script =
      "import ctypes, os\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "for flag in (0x10000000, 0x00020000):\n"
      "  print(libc.unshare(flag))\n"
      "print(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))\n"
      "print(libc.syscall(250, 10, -3, b'user', b'taskcell-test', 0))\n";  // KEYCTL_SEARCH
  RunOptions options;
  options.in_child = [] {
    if (::syscall(SYS_keyctl, 1, nullptr) < 0 ||
        ::syscall(SYS_add_key, "user", "taskcell-test", "x", 1, -3) < 0)
      ::_exit(90);
  };
  options.user = user_;
  Outcome outside = test::Run({"/usr/bin/python3", "-c", script}, options);
  std::string found =
      outside.out.substr(outside.out.find_last_of('\n', outside.out.size() - 2) + 1);
  EXPECT_THAT(outside.out, testing::StartsWith("0\n0\n0\n")) << "control";
  EXPECT_GT(std::stoi(found), 0) << "control";
  Outcome ran =
      With(R"({"defaultAction":"SCMP_ACT_ALLOW"})", {"/usr/bin/python3", "-c", script}, options);
  EXPECT_EQ(ran.out, "-1\n-1\n-1\n-1\n") << ran.err;
}

TEST_F(OwnFilterTest, OneThatLeavesKeysOpenIsRefusedWhereTheCallersKeyringCannotBeLeft) {
  RunOptions full;
  full.in_child = [] {
    if (!InstallFaults({{SYS_keyctl, EDQUOT}})) ::_exit(90);
  };
  Outcome ran = With(R"({"defaultAction":"SCMP_ACT_ALLOW"})", {"/bin/echo", "ran"}, full);
  EXPECT_EQ(ran.status, 125);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("keyctl"), HasSubstr("kernel.keys.maxkeys")));
  EXPECT_EQ(ran.out, "");
}

TEST_F(OwnFilterTest, WhatIsNoProfileIsRefusedWithItsReason) {
  const std::pair<const char*, const char*> rows[] = {
      {"", "seccomp profile"},
      {"{}", "defaultAction"},
      {R"({"defaultAction":"SCMP_ACT_ALLOW","more":1})", "unknown key 'more'"},
      {R"({"defaultAction":"SCMP_ACT_NOTIFY"})", "SCMP_ACT_NOTIFY"},
  };
  for (const auto& [profile, reason] : rows) {
    Outcome ran = With(profile, {"/bin/echo", "ran"});
    EXPECT_EQ(ran.status, 125) << profile;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("--seccomp"), HasSubstr(reason)));
    EXPECT_EQ(ran.out, "");
  }
  Outcome missing = Launch({"--seccomp=/no/such", "--", "/bin/true"});
  EXPECT_EQ(missing.status, 125);
  EXPECT_THAT(missing.err, HasSubstr("No such file"));
  EXPECT_THAT(Launch({"--seccomp=/tmp", "--", "/bin/true"}).err, HasSubstr("not a plain file"));
}

// A job that cannot even be started under its filter.
TEST_F(OwnFilterTest, OneThatDeniesExecIsARefusalOfTheProgram) {
  Outcome ran = With(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
      {"names":["execve","execveat"],"action":"SCMP_ACT_ERRNO","errnoRet":1}]})",
                     {"/bin/echo", "ran"});
  EXPECT_EQ(ran.status, 126);
}

}  // namespace
}  // namespace taskcell::test

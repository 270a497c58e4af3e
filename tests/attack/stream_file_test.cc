// A file or a terminal that a cell's program is given to read or to type in: of the same kernel
// uid, it could change the host's file through it.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tests/support/launch.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;

// Each way to change the file behind standard input, and what came of it.
constexpr char kAttack[] = R"(
import errno, os
def attempt(body):
  try: body(); print('done')
  except OSError as e: print(errno.errorcode[e.errno])
attempt(lambda: os.fchmod(0, 0o666))
attempt(lambda: os.utime(0, (1, 1)))
attempt(lambda: os.setxattr(0, 'user.taskcell', b'x'))
attempt(lambda: os.write(os.open('/proc/self/fd/0', os.O_WRONLY), b'changed'))
attempt(lambda: os.truncate('/proc/self/fd/0', 1))
)";

class StreamFileAttackTest : public LaunchTest {
 protected:
  void SetUp() override {
    LaunchTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    file_ = MakeFile("given", "content");
    ASSERT_EQ(::chown(file_.c_str(), user_->uid, user_->gid), 0);
    ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  }

  // With `file_` as standard input, and without the `faults`.
  RunOptions Given(std::vector<SyscallFault> faults) const {
    RunOptions options;
    options.user = user_;
    options.in_child = [this, faults = std::move(faults)] {
      int fd = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0 || ::dup2(fd, 0) != 0) ::_exit(90);  // NOLINT(android-cloexec-dup2): given
      if (!faults.empty() && !InstallFaults(faults)) ::_exit(91);
    };
    return options;
  }

  std::string Content() const {
    std::ifstream file(file_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void ExpectUntouched() const {
    struct stat info = {};
    ASSERT_EQ(::stat(file_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777U, 0600U);
    EXPECT_NE(info.st_mtim.tv_sec, 1);
    EXPECT_EQ(Content(), "content");
  }

  std::string file_;
};

const std::vector<SyscallFault> kWithoutLandlock = {{SYS_landlock_create_ruleset, ENOSYS},
                                                    {SYS_landlock_add_rule, ENOSYS},
                                                    {SYS_landlock_restrict_self, ENOSYS}};

TEST_F(StreamFileAttackTest, AFileGivenToBeReadCannotBeChanged) {
  for (const auto& faults : {std::vector<SyscallFault>{}, kWithoutLandlock}) {
    SCOPED_TRACE(faults.empty() ? "with Landlock" : "without Landlock");
    Outcome inside =
        Launch({"--userns=own", "--", "/usr/bin/python3", "-c", kAttack}, Given(faults));
    const std::string first = "EROFS\nEROFS\nEROFS\n";
    EXPECT_THAT(inside.out, testing::AnyOf(first + "EROFS\nEROFS\n", first + "EACCES\nEROFS\n",
                                           first + "EACCES\nEACCES\n"))
        << inside.err;
    ExpectUntouched();
  }
  Outcome outside = test::Run({"/usr/bin/python3", "-c", kAttack}, Given({}));
  EXPECT_EQ(outside.out, "done\ndone\ndone\ndone\ndone\n") << outside.err;  // control
  EXPECT_EQ(Content(), "c");
}

TEST_F(StreamFileAttackTest, ItIsReadFromWhereItsReaderWasAndCanBeSoughtIn) {
  RunOptions options = Given({});
  auto given = options.in_child;
  options.in_child = [given] {
    given();
    if (::lseek(0, 3, SEEK_SET) != 3) ::_exit(92);
  };
  Outcome ran = Launch({"--", "/usr/bin/python3", "-c",
                        "import os; print(os.read(0, 9)); os.lseek(0, 0, 0); print(os.read(0, 9)); "
                        "print(open('/dev/stdin').read())"},
                       options);
  EXPECT_EQ(ran.out, "b'tent'\nb'content'\ncontent\n") << ran.err;
}

// As some shells make a here-document: opened, and its name removed.
TEST_F(StreamFileAttackTest, AFileWithoutANameIsCopiedUpToItsBound) {
  constexpr off_t kBound = off_t{16} << 20U;
  for (off_t size : {kBound, kBound + 1}) {
    MakeFile("given", "");
    ASSERT_EQ(::truncate(file_.c_str(), size), 0);
    ASSERT_EQ(::chown(file_.c_str(), user_->uid, user_->gid), 0);
    RunOptions options = Given({});
    auto given = options.in_child;
    options.in_child = [given, this] {
      given();
      if (::unlink(file_.c_str()) != 0) ::_exit(92);
    };
    Outcome ran = Launch({"--", "/usr/bin/wc", "-c"}, options);
    if (size > kBound) {
      EXPECT_EQ(ran.status, 125);
      EXPECT_THAT(ran.err, HasSubstr("standard input is a file of this user"));
      EXPECT_THAT(ran.err, HasSubstr("cat FILE | taskcell-launch"));
    } else {
      EXPECT_EQ(ran.out, "16777216\n") << ran.err;
    }
  }
}

// Below a directory that is closed to the caller, who was given the descriptor by root.
TEST_F(StreamFileAttackTest, AFileThatCannotBeFoundByItsNameIsRefusedIfItsTheCallers) {
  const std::string inner = MakeFile("closed/given", "content");
  ASSERT_EQ(::chmod((scratch_ + "/closed").c_str(), 0700), 0);
  int fd = ::open(inner.c_str(), O_RDONLY | O_CLOEXEC);
  RunOptions options;
  options.in_child = [fd] {
    if (::dup2(fd, 0) != 0) ::_exit(90);  // NOLINT(android-cloexec-dup2): given
  };
  Outcome roots = Launch({"--", "/bin/cat"}, options);
  EXPECT_EQ(roots.out, "content") << roots.err;
  ASSERT_EQ(::lseek(fd, 0, SEEK_SET), 0);
  ASSERT_EQ(::fchown(fd, user_->uid, user_->gid), 0);
  Outcome refused = Launch({"--", "/bin/cat"}, options);
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.err, HasSubstr("standard input is a file of this user"));
  EXPECT_THAT(refused.err, HasSubstr("Give it by a pipe"));
  ::close(fd);
}

// A terminal of the caller's is its own: its mode lets others write to it.
TEST_F(StreamFileAttackTest, TheModeOfTheCallersTerminalCannotBeChanged) {
  int master = -1;
  int slave = -1;
  char name[64] = {};
  ASSERT_EQ(::openpty(&master, &slave, name, nullptr, nullptr), 0);
  ASSERT_EQ(::fchown(slave, user_->uid, user_->gid), 0);
  ASSERT_EQ(::fchmod(slave, 0600), 0);
  RunOptions options;
  options.user = user_;
  options.in_child = [slave] {
    if (::dup2(slave, 0) != 0) ::_exit(90);  // NOLINT(android-cloexec-dup2): given
  };
  const std::vector<std::string> attack = {
      "/usr/bin/python3", "-c",
      "import os\nprint(os.isatty(0), os.write(0, b'typed'))\n"
      "try: os.fchmod(0, 0o622); print('done')\nexcept OSError as e: print(e.errno)"};
  std::vector<std::string> inside = attack;
  inside.insert(inside.begin(), {"--userns=own", "--"});
  EXPECT_EQ(Launch(inside, options).out, "True 5\n30\n");
  struct stat info = {};
  ASSERT_EQ(::fstat(slave, &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_EQ(test::Run(attack, options).out, "True 5\ndone\n");  // control
  ::close(slave);
  ::close(master);
}

// In a mount namespace where that name is not there.
TEST_F(StreamFileAttackTest, ATerminalThatCannotBeFoundByItsNameIsRefusedButForOneOfTheCellsOwn) {
  int master = -1;
  int slave = -1;
  ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  ASSERT_EQ(::fchown(slave, user_->uid, user_->gid), 0);
  RunOptions options;
  options.in_child = [slave, this] {
    EnterDelegatedCgroup(user_->uid);
    for (int fd : {0, 1})
      if (::dup2(slave, fd) != fd) ::_exit(90);  // NOLINT(android-cloexec-dup2): given
  };
  auto launch = [&](const std::string& arguments) {
    return test::Run(
        {"/usr/bin/unshare", "--mount", "/bin/sh", "-c",
         "mount -t tmpfs none /dev/pts && exec setpriv --reuid=" + std::to_string(user_->uid) +
             " --regid=" + std::to_string(user_->gid) + " --clear-groups " +
             Program("taskcell-launch") + " --userns=own " + arguments},
        options);
  };
  Outcome refused = launch("-- /bin/true");
  EXPECT_EQ(refused.status, 125);
  EXPECT_THAT(refused.err, HasSubstr("standard input is a terminal of this user"));
  EXPECT_THAT(refused.err, HasSubstr("Use --tty"));
  Outcome own = launch("--tty -- /bin/true");
  EXPECT_EQ(own.status, 0) << own.err;
  ::close(slave);
  ::close(master);
}

}  // namespace
}  // namespace taskcell::test

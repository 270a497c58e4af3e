#include "launcher/sys/seccomp_install.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "gtest/gtest.h"

namespace taskcell::sys {
namespace {

// getppid answers EDOM, everything else is allowed.
constexpr sock_filter kGetppidIsEdom[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

// Runs `body` in a forked child and returns its exit status, or -1 when a signal ended it.
template <typename Body>
int InChild(Body body) {
  pid_t pid = ::fork();
  if (pid == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(SeccompInstallTest, InstalledFilterAnswersCalls) {
  int status = InChild([] {
    if (::getppid() <= 0) return 1;
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 2;
    Result<int> before = SeccompMode();
    if (!before.ok()) return 3;
    if (!InstallSeccomp(kGetppidIsEdom, std::size(kGetppidIsEdom)).ok()) return 4;
    Result<int> after = SeccompMode();
    if (!after.ok() || after.value() != SECCOMP_MODE_FILTER) return 5;
    errno = 0;
    if (::syscall(SYS_getppid) != -1 || errno != EDOM) return 6;
    return 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(SeccompInstallTest, EmptyProgramIsRefusedAndNothingIsInstalled) {
  int status = InChild([] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
    Result<int> before = SeccompMode();
    Status installed = InstallSeccomp(kGetppidIsEdom, 0);
    if (installed.ok() || installed.error().err != EINVAL) return 2;
    Result<int> after = SeccompMode();
    if (!before.ok() || !after.ok() || before.value() != after.value()) return 3;
    return ::syscall(SYS_getppid) > 0 ? 0 : 4;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::sys

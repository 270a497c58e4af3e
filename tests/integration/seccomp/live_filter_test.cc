// The default filter on real processes: what it denies, what must go on working, what it kills.
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "launcher/sys/seccomp_install.h"
#include "seccomp/default_filter.h"
#include "tests/support/fixture.h"

namespace taskcell::seccomp {
namespace {

constexpr int kCannotInstall = 250;
constexpr int kSoPeerPidfd = 77;

bool Confine() {
  Program program = DefaultFilter();
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         sys::InstallSeccomp(program.code, program.length).ok();
}

// Runs `body` in a forked child, under the filter or not; returns the wait status.
int InChild(bool confined, const std::function<int()>& body) {
  pid_t pid = ::fork();
  if (pid == 0) {
    if (confined && !Confine()) ::_exit(kCannotInstall);
    ::_exit(body());
  }
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

struct Attempt {
  const char* name;
  std::function<long()> call;
};

// Each with arguments that make the kernel refuse for another reason than EPERM, or do no harm.
std::vector<Attempt> DeniedAttempts() {
  static struct rlimit limit = {0, 0};
  static const char* const kNowhere = nullptr;
  auto call = [](long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
    return [=] { return ::syscall(number, a, b, c, d, e); };
  };
  return {
      {"unshare", call(SYS_unshare)},
      {"setns", call(SYS_setns, -1)},
      {"mount", [] { return ::syscall(SYS_mount, kNowhere, kNowhere, kNowhere, 0, kNowhere); }},
      {"umount2", call(SYS_umount2, 0, ~0)},
      {"pivot_root", call(SYS_pivot_root)},
      {"chroot", call(SYS_chroot)},
      {"open_tree", call(SYS_open_tree, -1, 0, ~0)},
      {"move_mount", call(SYS_move_mount, -1, 0, -1, 0, ~0)},
      {"fsopen", call(SYS_fsopen, 0, ~0)},
      {"fsconfig", call(SYS_fsconfig, -1, ~0)},
      {"fspick", call(SYS_fspick, -1, 0, ~0)},
      {"mount_setattr", call(SYS_mount_setattr, -1, 0, ~0)},
      {"name_to_handle_at", call(SYS_name_to_handle_at, -1, 0, 0, 0, ~0)},
      {"open_by_handle_at", call(SYS_open_by_handle_at, -1)},
      {"add_key", call(SYS_add_key)},
      {"keyctl", call(SYS_keyctl, 0, -1)},
      {"bpf", call(SYS_bpf, ~0)},
      {"perf_event_open", call(SYS_perf_event_open)},
      {"userfaultfd", call(SYS_userfaultfd, ~0)},
      {"io_uring_setup", call(SYS_io_uring_setup)},
      {"ptrace", call(SYS_ptrace, 0)},
      {"process_vm_readv", call(SYS_process_vm_readv, ::getpid())},
      {"process_vm_writev", call(SYS_process_vm_writev, ::getpid())},
      {"pidfd_getfd", call(SYS_pidfd_getfd, -1)},
      {"kcmp", call(SYS_kcmp, ::getpid(), ::getpid(), ~0)},
      {"process_madvise", call(SYS_process_madvise, -1, 0, 0, 0, ~0)},
      {"getsockopt SO_PEERPIDFD", call(SYS_getsockopt, -1, SOL_SOCKET, kSoPeerPidfd)},
      {"ioctl TIOCSTI", call(SYS_ioctl, -1, TIOCSTI)},
      {"ioctl TIOCSTI with garbage above", call(SYS_ioctl, -1, 0x700000000L | TIOCSTI)},
      {"ioctl TIOCLINUX", call(SYS_ioctl, -1, TIOCLINUX)},
      {"prlimit64 of a pid", call(SYS_prlimit64, ::getppid(), RLIMIT_NOFILE)},
      {"prlimit64 RLIMIT_CORE",
       [] { return ::syscall(SYS_prlimit64, 0, RLIMIT_CORE, &limit, nullptr); }},
      {"setrlimit RLIMIT_CORE", [] { return ::syscall(SYS_setrlimit, RLIMIT_CORE, &limit); }},
      {"personality ADDR_NO_RANDOMIZE", call(SYS_personality, ADDR_NO_RANDOMIZE)},
      {"socket AF_PACKET", call(SYS_socket, AF_PACKET, SOCK_RAW)},
      {"socket AF_ALG", call(SYS_socket, AF_ALG, SOCK_SEQPACKET)},
      {"socket AF_VSOCK", call(SYS_socket, AF_VSOCK, SOCK_STREAM)},
      {"socket AF_NETLINK 9", call(SYS_socket, AF_NETLINK, SOCK_RAW, 9)},
      {"init_module", call(SYS_init_module)},
      {"settimeofday", call(SYS_settimeofday)},
  };
}

int ErrnoOf(const Attempt& attempt) {
  errno = 0;
  return attempt.call() == -1 ? errno : 0;
}

TEST(LiveFilterTest, DeniedCallsAnswerEpermAndOnlyUnderTheFilter) {
  std::size_t told_apart = 0;
  for (const Attempt& attempt : DeniedAttempts()) {
    int confined = InChild(true, [&] { return ErrnoOf(attempt); });
    ASSERT_TRUE(WIFEXITED(confined)) << attempt.name;
    EXPECT_EQ(WEXITSTATUS(confined), EPERM) << attempt.name;
    int control = InChild(false, [&] { return ErrnoOf(attempt); });
    ASSERT_TRUE(WIFEXITED(control)) << attempt.name;
    if (WEXITSTATUS(control) != EPERM) ++told_apart;
  }
  Result<int> own = sys::SeccompMode();
  TASKCELL_REQUIRE(::geteuid() == 0 && own.ok() && own.value() == 0,
                   "needs root without a filter, to see the same calls answered otherwise");
  EXPECT_GE(told_apart, DeniedAttempts().size() - 3);
}

TEST(LiveFilterTest, Clone3DoesNotExistAndThreadsStillStart) {
  int status = InChild(true, [] {
    errno = 0;
    if (::syscall(SYS_clone3, nullptr, 0) != -1 || errno != ENOSYS) return 1;
    int seen = 0;
    std::thread([&] { seen = 7; }).join();
    if (seen != 7) return 2;
    pid_t child = ::fork();
    if (child == 0) ::_exit(9);
    int inner = 0;
    if (::waitpid(child, &inner, 0) != child || WEXITSTATUS(inner) != 9) return 3;
    errno = 0;
    return ::syscall(1000) == -1 && errno == ENOSYS ? 0 : 4;
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

#ifdef __x86_64__
TEST(LiveFilterTest, CallsOfOtherArchitecturesKillTheProcess) {
  auto i386_getpid = [] {
    long result = 20;  // getpid on i386
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return result > 0 || result == -ENOSYS ? 0 : 1;
  };
  auto x32_getpid = [] { return ::syscall(0x40000000 | SYS_getpid) != 0 ? 0 : 1; };
  for (const std::function<int()>& body :
       {std::function<int()>(i386_getpid), std::function<int()>(x32_getpid)}) {
    int control = InChild(false, body);
    // A kernel without 32-bit support answers the interrupt with a fault of its own, filter or not.
    const bool is_fault = WIFSIGNALED(control) && WTERMSIG(control) == SIGSEGV;
    EXPECT_TRUE(is_fault || (WIFEXITED(control) && WEXITSTATUS(control) == 0));
    int confined = InChild(true, body);
    ASSERT_TRUE(WIFSIGNALED(confined));
    EXPECT_TRUE(WTERMSIG(confined) == SIGSYS || (is_fault && WTERMSIG(confined) == SIGSEGV));
  }
}
#endif

// The exit status of `script` run by bash under the filter.
int Bash(const std::string& script) {
  int status = InChild(true, [&] {
    ::execl("/bin/bash", "bash", "-ec", script.c_str(), static_cast<char*>(nullptr));
    return 127;
  });
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class ProgramTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ProgramTest, RunsUnderTheFilter) {
  auto [program, script] = GetParam();
  if (Bash(std::string("command -v ") + program + " >/dev/null") != 0) {
    TASKCELL_REQUIRE(false, std::string(program) + " is not installed");
  }
  EXPECT_EQ(Bash(script), 0) << script;
  EXPECT_NE(Bash(std::string(script) + "; exit 3"), 0);  // a failing script is seen
}

INSTANTIATE_TEST_SUITE_P(
    Real, ProgramTest,
    testing::Values(
        std::pair("bash",
                  "x=$(echo a | tr a b); test $x = b; ulimit -n >/dev/null; sleep 0.01 & "
                  "wait; ! ulimit -c unlimited 2>/dev/null || test $(ulimit -Hc) = 0"),
        std::pair("python3",
                  "python3 -c 'import subprocess, socket, threading, tempfile, os\n"
                  "subprocess.run([\"true\"], check=True)\n"
                  "t = threading.Thread(target=lambda: None); t.start(); t.join()\n"
                  "a, b = socket.socketpair(); a.send(b\"x\"); assert b.recv(1) == b\"x\"\n"
                  "s = socket.create_server((\"127.0.0.1\", 0)); c = socket.create_connection("
                  "s.getsockname()); c.close()\n"
                  "with tempfile.TemporaryFile() as f: f.write(b\"x\")\n"
                  "os.kill(os.fork() or os._exit(0), 0)'"),
        std::pair("node",
                  "node -e 'const cp = require(\"child_process\"), fs = require(\"fs\");"
                  "cp.execSync(\"true\"); require(\"os\").networkInterfaces();"
                  "fs.promises.readdir(\"/\").then(e => { if (!e.length) process.exit(5) });"
                  "new (require(\"worker_threads\").Worker)(\"1\", {eval: true})'"),
        std::pair("git",
                  "d=$(mktemp -d); git -C $d init -q; touch $d/a; git -C $d add a; "
                  "git -C $d -c user.name=a -c user.email=a@b commit -qm x; rm -rf $d"),
        std::pair("gcc",
                  "d=$(mktemp -d); echo 'int main(){return 0;}' >$d/a.c; "
                  "gcc $d/a.c -o $d/a; $d/a; rm -rf $d")),
    [](const auto& each) { return std::string(each.param.first); });

}  // namespace
}  // namespace taskcell::seccomp

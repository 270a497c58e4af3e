// The least that a cell can cost: the same namespaces as taskcell-launch makes, a root with a bind,
// a tmpfs and a proc, pivot_root, exec. No limit, no check, nothing dropped, nothing hidden.
// Usage: taskcell-bench-floor ROOTFS PROGRAM
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kFailed = 125;
constexpr uint64_t kNamespaces = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
                                 CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWTIME;

void Must(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  ::_exit(kFailed);
}

void Write(const char* path, const char* text) {
  int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  ssize_t size = static_cast<ssize_t>(std::strlen(text));
  Must(fd >= 0 && ::write(fd, text, std::strlen(text)) == size, path);
  Must(::close(fd) == 0, path);
}

void MapIds(uid_t uid, gid_t gid) {
  char line[32];
  Write("/proc/self/setgroups", "deny");
  (void)std::snprintf(line, sizeof line, "1000 %u 1", uid);
  Write("/proc/self/uid_map", line);
  (void)std::snprintf(line, sizeof line, "1000 %u 1", gid);
  Write("/proc/self/gid_map", line);
}

void EnterRoot(const char* root) {
  constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV;
  Must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "private");
  Must(::mount(root, root, nullptr, MS_BIND | MS_REC, nullptr) == 0, "bind");
  Must(::chdir(root) == 0, "chdir");
  Must(::mount("tmpfs", "tmp", "tmpfs", kPlain, "size=16m") == 0, "tmpfs");
  Must(::mount("proc", "proc", "proc", kPlain | MS_NOEXEC, nullptr) == 0, "proc");
  Must(::syscall(SYS_pivot_root, ".", ".") == 0, "pivot_root");
  Must(::umount2(".", MNT_DETACH) == 0, "umount2");
  Must(::chdir("/") == 0, "chdir");
}

}  // namespace

int main(int argc, char** argv) {
  Must(argc == 3, "usage: taskcell-bench-floor ROOTFS PROGRAM");
  uid_t uid = ::geteuid();
  gid_t gid = ::getegid();
  struct clone_args arguments = {};
  arguments.flags = kNamespaces;
  arguments.exit_signal = SIGCHLD;
  long child = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (child < 0 &&
      errno == EINVAL) {  // a kernel from before time namespaces: a cell has none there
    arguments.flags &= ~uint64_t{CLONE_NEWTIME};
    child = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  }
  Must(child >= 0, "clone3");
  if (child == 0) {
    MapIds(uid, gid);
    EnterRoot(argv[1]);
    char* program[] = {argv[2], nullptr};
    ::execv(argv[2], program);
    Must(false, "execv");
  }
  int status = 0;
  Must(::waitpid(static_cast<pid_t>(child), &status, 0) == child, "waitpid");
  return WIFEXITED(status) ? WEXITSTATUS(status) : kFailed;
}

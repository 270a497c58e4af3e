#include "launcher/sys/trial.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace taskcell::sys {

int32_t TrySyscall(long number, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth,
                   uint64_t fifth, uint64_t sixth) {
  long result = ::syscall(number, first, second, third, fourth, fifth, sixth);
  return result < 0 ? errno : 0;
}

int64_t RawSyscall(long number, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth,
                   uint64_t fifth, uint64_t sixth) {
  long result = ::syscall(number, first, second, third, fourth, fifth, sixth);
  return result < 0 ? -int64_t{errno} : int64_t{result};
}

int32_t TryClone(uint64_t flags) {
  long pid = ::syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid < 0) return errno;
  if (pid == 0) ::_exit(0);
  (void)::waitpid(static_cast<pid_t>(pid), nullptr, 0);  // ignoring: it only had to be tried
  return 0;
}

int32_t TryOpen(const char* path, int flags) {
  int fd = ::open(path, flags | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  (void)::close(fd);
  return 0;
}

UniqueFd OwnPidfd() {
  constexpr long kPidfdOpen = 434;
  return UniqueFd(static_cast<int>(::syscall(kPidfdOpen, ::getpid(), 0)));
}

}  // namespace taskcell::sys

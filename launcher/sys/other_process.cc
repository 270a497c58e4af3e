#include "launcher/sys/other_process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {

Result<UniqueFd> OpenPidfd(pid_t pid) {
  int fd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));  // CLOEXEC by itself
  if (fd >= 0) return UniqueFd(fd);
  int err = errno;
  // The kernel knows the id, but no process by it: EINVAL, in newer kernels ENOENT for a thread's.
  if (pid > 0 && (err == EINVAL || err == ENOENT)) err = ESRCH;
  return FailureOf(err, Text("pidfd_open ", pid));
}

Status SignalPidfd(int pidfd, int signal) {
  if (::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0) < 0)
    return Failure(Text("pidfd_send_signal (pidfd ", pidfd, ") ", signal));
  return Ok();
}

}  // namespace taskcell::sys

#include "launcher/sys/termination.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"
#include "launcher/sys/signals.h"

namespace taskcell::sys {
namespace {

int write_end = -1;  // set before the handlers are, never closed

// Async-signal-safe: write(2) only, errno as it was.
extern "C" void OnTermination(int /*signal*/) {
  int saved = errno;
  ssize_t written = ::write(write_end, "x", 1);
  (void)written;  // ignoring: a full pipe is readable already
  errno = saved;
}

}  // namespace

Result<UniqueFd> CatchTermination() {
  Pipe pipe = TRY(MakePipe(O_NONBLOCK));
  write_end = pipe.write_end.Release();
  struct sigaction action = {};
  action.sa_handler = OnTermination;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (IsIgnored(signal)) continue;
    if (::sigaction(signal, &action, nullptr) < 0) return Failure(Text("sigaction ", signal));
  }
  return std::move(pipe.read_end);
}

}  // namespace taskcell::sys

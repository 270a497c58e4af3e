#include "launcher/sys/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/signal_mask.h"

namespace taskcell::sys {

bool IsControllingTerminal(int fd) {
  pid_t session = 0;
  return ::ioctl(fd, TIOCGSID, &session) == 0;
}

pid_t ForegroundGroup(int fd) {
  pid_t group = ::tcgetpgrp(fd);
  return group > 0 ? group : 0;
}

bool IsForeground(int fd) { return ForegroundGroup(fd) == ::getpgrp(); }

Status SetForeground(int fd, pid_t group) {
  SignalsBlocked blocked = TRY(BlockAllSignals());
  if (::tcsetpgrp(fd, group) < 0) return Failure(Text("tcsetpgrp (fd ", fd, ") ", group));
  return Ok();
}

std::optional<struct termios> TerminalModes(int fd) {
  struct termios modes = {};
  if (::tcgetattr(fd, &modes) < 0) return std::nullopt;
  return modes;
}

Status SetTerminalModes(int fd, const struct termios& modes) {
  SignalsBlocked blocked = TRY(BlockAllSignals());
  if (::tcsetattr(fd, TCSANOW, &modes) < 0) return Failure(Text("tcsetattr (fd ", fd, ")"));
  return Ok();
}

Status DropTyped(int fd) {
  SignalsBlocked blocked = TRY(BlockAllSignals());
  if (::tcflush(fd, TCIFLUSH) < 0) return Failure(Text("tcflush (fd ", fd, ")"));
  return Ok();
}

struct termios RawModes(struct termios modes) {
  ::cfmakeraw(&modes);
  return modes;
}

Result<TerminalPair> MakeTerminal(const char* multiplexer) {
  UniqueFd master(::open(multiplexer, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master.valid()) return Failure(Text("open '", multiplexer, "'"));
  int locked = 0;
  if (::ioctl(master.get(), TIOCSPTLCK, &locked) < 0) return Failure("ioctl TIOCSPTLCK");
  // By the descriptor, so that no name can lead elsewhere (Linux 4.13).
  UniqueFd slave(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!slave.valid()) return Failure("ioctl TIOCGPTPEER");
  return TerminalPair{std::move(master), std::move(slave)};
}

bool IsTerminalMaster(int fd) {
  unsigned number = 0;
  return ::ioctl(fd, TIOCGPTN, &number) == 0;
}

Status TakeControllingTerminal(int fd) {
  if (::ioctl(fd, TIOCSCTTY, 0) < 0) return Failure(Text("ioctl TIOCSCTTY (fd ", fd, ")"));
  return Ok();
}

Status CopyWindowSize(int from, int to) {
  struct winsize size = {};
  if (::ioctl(from, TIOCGWINSZ, &size) < 0)
    return Failure(Text("ioctl TIOCGWINSZ (fd ", from, ")"));
  if (::ioctl(to, TIOCSWINSZ, &size) < 0) return Failure(Text("ioctl TIOCSWINSZ (fd ", to, ")"));
  return Ok();
}

}  // namespace taskcell::sys

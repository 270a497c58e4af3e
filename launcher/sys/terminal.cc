#include "launcher/sys/terminal.h"

#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/signal_mask.h"

namespace taskcell::sys {

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

}  // namespace taskcell::sys

#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

#include "launcher/base/result.h"

namespace taskcell::sys {

// tcgetpgrp(3): the process group in the foreground of `fd`; 0 where `fd` is not the caller's
// controlling terminal, or where that group is not visible from here.
pid_t ForegroundGroup(int fd);

// True when `fd` is the caller's controlling terminal and the caller's group is in its foreground.
bool IsForeground(int fd);

// tcsetpgrp(3); SIGTTOU stays blocked meanwhile, so that it works from the background too.
Status SetForeground(int fd, pid_t group);

// tcgetattr(3); nothing where `fd` is no terminal.
std::optional<struct termios> TerminalModes(int fd);

// tcsetattr(3) at once; SIGTTOU stays blocked meanwhile.
Status SetTerminalModes(int fd, const struct termios& modes);

}  // namespace taskcell::sys

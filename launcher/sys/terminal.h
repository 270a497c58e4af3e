#pragma once

#include <sys/types.h>
#include <termios.h>

#include <optional>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// True when `fd` is the caller's controlling terminal, also where its session is not visible from
// here (TIOCGSID).
bool IsControllingTerminal(int fd);

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

// tcflush(3): forgets what was typed and nobody has read; SIGTTOU stays blocked meanwhile.
Status DropTyped(int fd);

// The same modes with nothing done to what goes through (cfmakeraw(3)).
struct termios RawModes(struct termios modes);

// A pseudoterminal: what is written to one side is read from the other, as at a terminal. Neither
// becomes a controlling terminal by being opened.
struct TerminalPair {
  UniqueFd master;
  UniqueFd slave;
};
// Makes one through `multiplexer`, the ptmx of a devpts the caller trusts, whose name for it the
// slave gets.
Result<TerminalPair> MakeTerminal(const char* multiplexer);

// True when `fd` is the master side of a pseudoterminal (TIOCGPTN).
bool IsTerminalMaster(int fd);

// ioctl(TIOCSCTTY): `fd` becomes the controlling terminal of the caller, a session leader without
// one.
Status TakeControllingTerminal(int fd);

// Gives `to` the window size of `from` (TIOCGWINSZ, TIOCSWINSZ), which tells the group in its
// foreground by SIGWINCH.
Status CopyWindowSize(int from, int to);

}  // namespace taskcell::sys

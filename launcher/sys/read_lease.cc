#include "launcher/sys/read_lease.h"

#include <fcntl.h>
#include <signal.h>

#include <cerrno>

namespace taskcell::sys {

ReadLease::ReadLease(int fd) : fd_(fd) {
  // Whoever comes to write has a signal sent here, by default SIGIO, which kills. This one is
  // ignored by default.
  if (::fcntl(fd, F_SETSIG, SIGURG) < 0) return;
  if (::fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
    state_ = State::kHeld;
  else if (errno == EAGAIN)
    state_ = State::kWriters;
}

ReadLease::~ReadLease() {
  // ignoring: it goes with the descriptor at the latest
  if (state_ == State::kHeld) (void)::fcntl(fd_, F_SETLEASE, F_UNLCK);
}

bool ReadLease::IsBroken() const {
  // While somebody waits, this answers what the lease is to become.
  return state_ == State::kHeld && ::fcntl(fd_, F_GETLEASE) != F_RDLCK;
}

}  // namespace taskcell::sys

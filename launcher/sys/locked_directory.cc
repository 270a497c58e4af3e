#include "launcher/sys/locked_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::sys {
namespace {

constexpr int kRounds = 2000;  // of a millisecond: who tidies up holds the lock while it removes

}  // namespace

Result<UniqueFd> MakeLockedDirectory(int parent_fd, const std::string& name, mode_t mode) {
  for (int round = 0;; ++round) {
    Status made = MakeDirectory(parent_fd, name, mode);
    if (!made.ok() && (round == 0 || made.error().err != EEXIST)) return std::move(made).error();
    Result<UniqueFd> fd = OpenAt2(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                                  kResolveBeneath | RESOLVE_NO_XDEV);
    if (fd.ok() && TRY(Stat(fd->get())).st_uid == ::geteuid() &&
        LockNamed(fd->get(), LOCK_EX, parent_fd, name))
      return fd;
    if (round == kRounds)
      return Error(Kind::kSystem, Text("'", name, "' keeps being locked by another process"),
                   EBUSY);
    TRY(Poll(-1, 0, 1));
  }
}

}  // namespace taskcell::sys

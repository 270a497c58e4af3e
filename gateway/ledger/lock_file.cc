#include "gateway/ledger/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {

Status LockWithin(int fd, std::chrono::milliseconds wait) {
  constexpr std::chrono::milliseconds kPause{20};
  const auto until = std::chrono::steady_clock::now() + wait;
  while (true) {
    Status locked = sys::Lock(fd, LOCK_EX | LOCK_NB);
    if (locked.ok() || locked.error().err != EWOULDBLOCK) return locked;
    if (std::chrono::steady_clock::now() >= until) return locked;
    std::this_thread::sleep_for(kPause);
  }
}

Result<UniqueFd> OpenLocked(int home_fd, const std::string& path, std::chrono::milliseconds wait) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  UniqueFd file = TRY(sys::OpenAt2(home_fd, path, kFlags, sys::kResolveBeneath, 0600));
  if (!S_ISREG(TRY(sys::Stat(file.get())).st_mode))
    return Error(Kind::kConfig, Text(path, " is not a regular file; remove it"));
  TRY(LockWithin(file.get(), wait).With(path));
  return file;
}

Result<UniqueFd> TakeHomeLock(int home_fd, const std::string& name,
                              std::chrono::milliseconds wait) {
  constexpr char kDirectory[] = "locks";
  Status made = sys::MakeDirectory(home_fd, kDirectory, 0700);
  if (!made.ok() && made.error().err != EEXIST) return std::move(made).error();
  return OpenLocked(home_fd, Text(kDirectory, "/", name), wait);
}

}  // namespace taskcell::gateway

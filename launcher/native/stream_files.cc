#include "launcher/native/stream_files.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/native/mount_source.h"
#include "launcher/sys/copy.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount.h"
#include "launcher/sys/self.h"

namespace taskcell::native {
namespace {

constexpr const char* kStreams[] = {"standard input", "standard output", "standard error"};

std::string PathOf(int fd) { return Text("/proc/self/fd/", fd); }

// Whether there is something to keep a cell from; what is given to be written is given as a whole.
bool WantsGuard(const struct stat& info, uint32_t access, const cell::CellPlan& plan) {
  if (S_ISREG(info.st_mode)) return access == O_RDONLY;
  return S_ISCHR(info.st_mode) && info.st_uid == plan.uid;
}

bool CanChange(const struct stat& info, const cell::CellPlan& plan) {
  return info.st_uid == plan.uid || (info.st_mode & S_IWOTH) != 0 ||
         ((info.st_mode & S_IWGRP) != 0 && info.st_gid == plan.gid);
}

Result<UniqueFd> OpenAgain(int fd, const struct stat& info, uint32_t access) {
  std::string name = TRY(sys::ReadLink(AT_FDCWD, PathOf(fd)));
  UniqueFd pin = TRY(PinPath(name));
  struct stat found = TRY(sys::Stat(pin.get()));
  if (found.st_dev != info.st_dev || found.st_ino != info.st_ino || found.st_rdev != info.st_rdev)
    return Error(Kind::kViolation, "another file has its name", ESTALE);
  UniqueFd tree = TRY(sys::CloneMount(pin.get(), false));
  TRY(sys::SetMountAttributes(tree.get(), MOUNT_ATTR_RDONLY, 0, false));
  UniqueFd file = TRY(sys::Open(PathOf(tree.get()), static_cast<int>(access) | O_NOCTTY));
  if (S_ISREG(info.st_mode)) TRY(sys::CopyOffset(file.get(), fd));
  return file;
}

Result<UniqueFd> CopyNameless(int fd) {
  UniqueFd copy = TRY(sys::MakeMemfd("stream", 0));
  TRY(sys::CopyContent(copy.get(), fd, kMaxNamelessBytes));
  return sys::Open(PathOf(copy.get()), O_RDONLY);
}

Error Unguarded(int fd, bool is_file, const Error& error) {
  return Error(
      Kind::kUnsupported,
      Text(kStreams[fd], " is ", is_file ? "a file" : "a terminal",
           " of this user that the program could change through it: it cannot be opened once more "
           "by its name (",
           error.text, "), on a mount that is read-only. ",
           is_file ? "Give it by a pipe: cat FILE | taskcell-launch ..."
                   : "Use --tty, which gives the program a terminal of its own"),
      error.err);
}

}  // namespace

Result<std::vector<StreamFile>> GuardStreams(const cell::CellPlan& plan) {
  std::vector<StreamFile> guarded;
  for (int fd = 0; fd <= 2; ++fd) {
    Result<struct stat> info = sys::Stat(fd);
    if (!info.ok()) continue;  // closed
    uint32_t access = TRY(sys::AccessMode(fd));
    if (!WantsGuard(info.value(), access, plan)) continue;
    bool nameless = S_ISREG(info->st_mode) && info->st_nlink == 0;
    Result<UniqueFd> file = nameless ? CopyNameless(fd) : OpenAgain(fd, info.value(), access);
    if (file.ok()) {
      guarded.push_back({fd, std::move(file).value()});
    } else if (CanChange(info.value(), plan)) {
      return Unguarded(fd, S_ISREG(info->st_mode), file.error());
    }
  }
  return guarded;
}

}  // namespace taskcell::native

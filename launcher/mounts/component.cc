#include "launcher/mounts/component.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"

namespace taskcell::mounts {
namespace {

Error Refused(const std::string& name, const char* why, int err) {
  return Error(Kind::kSystem, Text("open '", Printable(name), "': ", why), err);
}

bool IsSame(const struct statx& a, const struct statx& b) {
  return a.stx_ino == b.stx_ino && sys::DeviceOf(a) == sys::DeviceOf(b) &&
         a.stx_mnt_id == b.stx_mnt_id;
}

Status Look(int fd, struct statx& info) {
  TRY(sys::StatEntry(fd, "", AT_STATX_DONT_SYNC, info));
  // Else a file that is mounted over another could not be told from it.
  if ((info.stx_mask & STATX_MNT_ID) == 0)
    return Error(Kind::kUnsupported, "statx tells no mount: needs Linux 5.8", ENOSYS);
  return Ok();
}

Result<UniqueFd> OpenPinned(int dir_fd, const std::string& name, int flags, Crossing crossing) {
  UniqueFd pin = TRY(sys::OpenNoFollow(dir_fd, name, O_PATH));
  struct statx directory = {};
  struct statx pinned = {};
  TRY(Look(dir_fd, directory));
  TRY(Look(pin.get(), pinned));
  if (crossing == Crossing::kNever && pinned.stx_mnt_id != directory.stx_mnt_id)
    return Refused(name, "something is mounted on it", EXDEV);
  if ((flags & O_PATH) != 0) return pin;
  if (S_ISLNK(pinned.stx_mode)) return Refused(name, "it is a symbolic link", ELOOP);
  UniqueFd opened = TRY(sys::OpenNoFollow(dir_fd, name, flags));
  struct statx now = {};
  TRY(Look(opened.get(), now));
  if (!IsSame(now, pinned)) return Refused(name, "it changed meanwhile", EAGAIN);
  return opened;
}

}  // namespace

Result<UniqueFd> OpenComponent(int dir_fd, const std::string& name, int flags, Crossing crossing) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    return Error(Kind::kInternal, Text("'", Printable(name), "' is not one path component"));
  uint64_t resolve =
      sys::kResolveBeneath | (crossing == Crossing::kNever ? uint64_t{RESOLVE_NO_XDEV} : 0);
  Result<UniqueFd> opened = sys::OpenAt2(dir_fd, name, flags | O_NOFOLLOW, resolve);
  if (opened.ok() || (opened.error().err != ENOSYS && opened.error().err != EPERM)) return opened;
  return OpenPinned(dir_fd, name, flags, crossing);
}

}  // namespace taskcell::mounts

#include "launcher/sys/entry.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

std::string Named(std::string_view call, std::string_view name, int dir_fd) {
  return Text(call, " '", Printable(name), "' (dir fd ", dir_fd, ")");
}

}  // namespace

Status StatEntry(int dir_fd, const char* name, int sync, struct statx& info) {
  int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | sync | (*name == '\0' ? AT_EMPTY_PATH : 0);
  if (::statx(dir_fd, name, flags, kEntryMask, &info) < 0)
    return Failure(Named("statx", name, dir_fd));
  return Ok();
}

uint64_t DeviceOf(const struct statx& info) {
  return gnu_dev_makedev(info.stx_dev_major, info.stx_dev_minor);
}

Result<UniqueFd> OpenNoFollow(int dir_fd, const std::string& name, int flags, mode_t mode) {
  int fd = ::openat(dir_fd, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode);
  if (fd < 0) return Failure(Named("openat", name, dir_fd));
  return UniqueFd(fd);
}

Result<std::size_t> ReadRecords(int fd, std::span<char> buffer) {
  ssize_t got = ::getdents64(fd, buffer.data(), buffer.size());
  if (got < 0) return Failure(Text("getdents64 (dir fd ", fd, ")"));
  return static_cast<std::size_t>(got);
}

Status SeekRecords(int fd, int64_t offset) {
  if (::lseek(fd, offset, SEEK_SET) < 0) return Failure(Text("lseek (dir fd ", fd, ")"));
  return Ok();
}

Result<bool> HasAttribute(int dir_fd, const char* name, const char* attribute) {
  std::string path = Text("/proc/self/fd/", dir_fd, "/", name);
  if (::lgetxattr(path.c_str(), attribute, nullptr, 0) >= 0) return true;
  int err = errno;
  if (err == ENODATA || err == ENOTSUP) return false;
  return FailureOf(err, Named("lgetxattr", name, dir_fd));
}

Result<std::string> AttributeNames(int fd) {
  std::array<char, 256> few;  // all that most have
  ssize_t length = ::flistxattr(fd, few.data(), few.size());
  if (length >= 0) return std::string(few.data(), static_cast<std::size_t>(length));
  int err = errno;
  if (err == ENOTSUP) return std::string();
  if (err != ERANGE) return FailureOf(err, Text("flistxattr (fd ", fd, ")"));
  std::string names(XATTR_LIST_MAX, '\0');
  length = ::flistxattr(fd, names.data(), names.size());
  if (length < 0) return Failure(Text("flistxattr (fd ", fd, ")"));
  names.resize(static_cast<std::size_t>(length));
  return names;
}

bool IsProc() {
  struct statfs info = {};
  return ::statfs("/proc", &info) == 0 && info.f_type == PROC_SUPER_MAGIC &&
         ::access("/proc/self/fd", X_OK) == 0;
}

}  // namespace taskcell::sys

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

// A link in the last position is the magic one where `name` is "".
std::string ProcPath(int dir_fd, std::string_view name) {
  std::string path = Text("/proc/self/fd/", dir_fd);
  if (!name.empty()) {
    path += '/';
    path += name;
  }
  return path;
}

// `list` is one of the listxattr(2) family, `call` its name for an Error.
template <typename List, typename Call>
Result<std::string> NamesBy(const List& list, const Call& call) {
  std::array<char, 256> few;  // all that most have
  ssize_t length = list(few.data(), few.size());
  if (length >= 0) return std::string(few.data(), static_cast<std::size_t>(length));
  int err = errno;
  if (err == ENOTSUP) return std::string();
  if (err != ERANGE) return FailureOf(err, call());
  std::string names(XATTR_LIST_MAX, '\0');
  length = list(names.data(), names.size());
  err = errno;
  if (length < 0) return FailureOf(err, call());
  names.resize(static_cast<std::size_t>(length));
  return names;
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
  const std::string path = ProcPath(dir_fd, name);
  const ssize_t length = *name == '\0' ? ::getxattr(path.c_str(), attribute, nullptr, 0)
                                       : ::lgetxattr(path.c_str(), attribute, nullptr, 0);
  if (length >= 0) return true;
  int err = errno;
  if (err == ENODATA || err == ENOTSUP) return false;
  return FailureOf(err, Named("lgetxattr", name, dir_fd));
}

Result<bool> IsReadable(int dir_fd, const char* name) {
  if (::faccessat(dir_fd, name, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0) return true;
  int err = errno;
  if (err == EACCES || err == EPERM) return false;
  return FailureOf(err, Named("faccessat", name, dir_fd));
}

Result<std::string> AttributeNames(int dir_fd, const char* name) {
  return NamesBy(
      [path = ProcPath(dir_fd, name), itself = *name == '\0'](char* names, std::size_t size) {
        return itself ? ::listxattr(path.c_str(), names, size)
                      : ::llistxattr(path.c_str(), names, size);
      },
      [name, dir_fd] { return Named("llistxattr", name, dir_fd); });
}

Result<std::string> AttributeNames(int fd) {
  return NamesBy([fd](char* names, std::size_t size) { return ::flistxattr(fd, names, size); },
                 [fd] { return Text("flistxattr (fd ", fd, ")"); });
}

bool IsProc() {
  struct statfs info = {};
  return ::statfs("/proc", &info) == 0 && info.f_type == PROC_SUPER_MAGIC &&
         ::access("/proc/self/fd", X_OK) == 0;
}

}  // namespace taskcell::sys

#include "launcher/sys/file.h"

#include <dirent.h>
#include <linux/fs.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/path_walk.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::sys {
namespace {

constexpr int kRaceRetries =
    128;  // 32 failed about 3 % of the time under a rename storm (filepath-securejoin)

bool g_avoids_openat2 = false;

std::string Named(std::string_view call, std::string_view path, int dir_fd) {
  std::string text = Text(call, " '", Printable(path), "'");
  if (dir_fd != AT_FDCWD) text += Text(" (dir fd ", dir_fd, ")");
  return text;
}

Status RefuseNul(std::string_view call, const std::string& path) {
  if (path.find('\0') == std::string::npos) return Ok();
  return Error(Kind::kUsage, Text(call, " '", Printable(path), "': the path holds a NUL byte"),
               EINVAL);
}

}  // namespace

Result<UniqueFd> OpenAt2(int dir_fd, const std::string& path, int flags, uint64_t resolve,
                         mode_t mode) {
  TRY(RefuseNul("openat2", path));
  if ((flags & O_TRUNC) != 0)
    return Error(Kind::kInternal, Text(Named("openat2", path, dir_fd), ": with O_TRUNC"), EINVAL);
  if (g_avoids_openat2) return WalkPath(dir_fd, path, flags, resolve, mode);
  struct open_how how = {};
  how.flags = static_cast<uint32_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = resolve;
  for (int tries = 0;; ++tries) {
    int fd = static_cast<int>(::syscall(SYS_openat2, dir_fd, path.c_str(), &how, sizeof how));
    if (fd >= 0) return UniqueFd(fd);
    int err = errno;
    if (err == EINTR || (err == EAGAIN && tries < kRaceRetries)) continue;
    // EPERM: a filter's. Where it is about this file, the walk meets it again.
    const bool is_too_long = err == ENAMETOOLONG && path.size() >= PATH_MAX;
    if (err == ENOSYS || err == EPERM || is_too_long) {
      return WalkPath(dir_fd, path, flags, resolve, mode)
          .With(Text(Named("openat2", path, dir_fd), ", by a walk"));
    }
    return FailureOf(err, Named("openat2", path, dir_fd));
  }
}

void AvoidOpenat2() { g_avoids_openat2 = true; }

Result<UniqueFd> Open(const std::string& path, int flags, mode_t mode) {
  TRY(RefuseNul("open", path));
  int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return Failure(Named("open", path, AT_FDCWD));
  return UniqueFd(fd);
}

Result<UniqueFd> Duplicate(int fd, int at_least) {
  int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, at_least);
  if (copy < 0) return Failure(Text("fcntl F_DUPFD_CLOEXEC (fd ", fd, ")"));
  return UniqueFd(copy);
}

Status KeepOnExec(int fd) {
  if (::fcntl(fd, F_SETFD, 0) < 0) return Failure(Text("fcntl F_SETFD (fd ", fd, ")"));
  return Ok();
}

Result<std::string> ReadAll(int fd, std::size_t limit) {
  std::string data;
  std::array<char, 16384> chunk;
  while (true) {
    std::size_t got = TRY(Read(fd, chunk));
    if (got == 0) return data;
    if (data.size() + got > limit) {
      return Error(Kind::kViolation, Text("fd ", fd, " holds more than ", limit, " bytes"), EFBIG);
    }
    data.append(chunk.data(), got);
  }
}

Result<std::string> ReadAllWithin(int fd, std::size_t limit, int timeout_ms) {
  constexpr uint64_t kUsPerMs = 1000;
  const uint64_t end_us = MonotonicUs() + static_cast<uint64_t>(std::max(timeout_ms, 0)) * kUsPerMs;
  std::string data;
  std::array<char, 16384> chunk;
  while (true) {
    uint64_t now_us = MonotonicUs();
    int left_ms = now_us < end_us ? static_cast<int>((end_us - now_us) / kUsPerMs) + 1 : 0;
    if (TRY(Poll(fd, POLLIN, timeout_ms < 0 ? -1 : left_ms)) == 0) {
      return Error(Kind::kSystem,
                   Text("fd ", fd, " did not come to its end within ", timeout_ms, " ms"),
                   ETIMEDOUT);
    }
    Result<std::size_t> got = Read(fd, chunk);
    if (!got.ok() && got.error().err == EAGAIN) continue;  // another reader was faster
    if (!got.ok()) return std::move(got).error();
    if (got.value() == 0) return data;
    if (data.size() + got.value() > limit) {
      return Error(Kind::kViolation, Text("fd ", fd, " holds more than ", limit, " bytes"), EFBIG);
    }
    data.append(chunk.data(), got.value());
  }
}

Result<std::string> ReadFile(int dir_fd, const std::string& path, std::size_t limit) {
  constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
  UniqueFd fd = dir_fd == AT_FDCWD ? TRY(Open(path, kFlags))
                                   : TRY(OpenAt2(dir_fd, path, kFlags, kResolveBeneath));
  return ReadAll(fd.get(), limit).With(Named("read", path, dir_fd));
}

Result<std::size_t> Read(int fd, std::span<char> buffer) {
  while (true) {
    ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    int err = errno;
    if (err != EINTR) return FailureOf(err, Text("read (fd ", fd, ")"));
  }
}

Result<std::size_t> ReadAt(int fd, std::span<char> buffer, int64_t offset) {
  while (true) {
    ssize_t got = ::pread(fd, buffer.data(), buffer.size(), offset);
    if (got >= 0) return static_cast<std::size_t>(got);
    int err = errno;
    if (err != EINTR) return FailureOf(err, Text("pread (fd ", fd, ")"));
  }
}

Status WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    ssize_t put = ::write(fd, data.data(), data.size());
    if (put >= 0) {
      data.remove_prefix(static_cast<std::size_t>(put));
      continue;
    }
    int err = errno;
    if (err != EINTR) return FailureOf(err, Text("write (fd ", fd, ")"));
  }
  return Ok();
}

Status WriteControl(int dir_fd, const std::string& path, std::string_view data) {
  TRY(RefuseNul("write", path));
  int fd = ::openat(dir_fd, path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return Failure(Named("open for writing", path, dir_fd));
  UniqueFd owner(fd);
  ssize_t put = ::write(fd, data.data(), data.size());
  if (put < 0)
    return Failure(Text(Named("write", path, dir_fd), " <- '", Printable(Trim(data)), "'"));
  if (static_cast<std::size_t>(put) != data.size()) {
    return Error(
        Kind::kSystem,
        Text(Named("write", path, dir_fd), ": only ", put, " of ", data.size(), " bytes taken"),
        EIO);
  }
  return Ok();
}

Result<struct stat> Stat(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) < 0) return Failure(Text("fstat (fd ", fd, ")"));
  return info;
}

Result<bool> HasAccessList(int fd) {
  // By its name in /proc: fgetxattr takes no O_PATH descriptor.
  std::string path = Text("/proc/self/fd/", fd);
  if (::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) >= 0) return true;
  int err = errno;
  if (err == ENODATA || err == ENOTSUP) return false;
  return FailureOf(err, Named("getxattr", path, AT_FDCWD));
}

Result<struct stat> StatAt(int dir_fd, const std::string& path) {
  TRY(RefuseNul("fstatat", path));
  struct stat info = {};
  if (::fstatat(dir_fd, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) < 0)
    return Failure(Named("fstatat", path, dir_fd));
  return info;
}

Status MakeFile(int dir_fd, const std::string& path, mode_t mode) {
  TRY(RefuseNul("mknod", path));
  if (::mknodat(dir_fd, path.c_str(), S_IFREG | mode, 0) < 0)
    return Failure(Named("mknod", path, dir_fd));
  return Ok();
}

Status MakeDirectory(int dir_fd, const std::string& path, mode_t mode) {
  TRY(RefuseNul("mkdir", path));
  if (::mkdirat(dir_fd, path.c_str(), mode) < 0) return Failure(Named("mkdir", path, dir_fd));
  return Ok();
}

Status RemoveFile(int dir_fd, const std::string& path) {
  TRY(RefuseNul("unlink", path));
  if (::unlinkat(dir_fd, path.c_str(), 0) < 0) return Failure(Named("unlink", path, dir_fd));
  return Ok();
}

Status RemoveDirectory(int dir_fd, const std::string& path) {
  TRY(RefuseNul("rmdir", path));
  if (::unlinkat(dir_fd, path.c_str(), AT_REMOVEDIR) < 0)
    return Failure(Named("rmdir", path, dir_fd));
  return Ok();
}

Status Truncate(int fd, int64_t size) {
  if (::ftruncate(fd, size) < 0) return Failure(Text("ftruncate (fd ", fd, ") to ", size));
  return Ok();
}

Status ChangeMode(int fd, mode_t mode) {
  if (::fchmod(fd, mode) < 0) return Failure(Text("fchmod (fd ", fd, ")"));
  return Ok();
}

Status ChangeModeAt(int dir_fd, const std::string& path, mode_t mode) {
  TRY(RefuseNul("fchmodat", path));
  if (::fchmodat(dir_fd, path.c_str(), mode, 0) < 0)
    return Failure(Named("fchmodat", path, dir_fd));
  return Ok();
}

Status ChangeOwner(int fd, uid_t uid, gid_t gid) {
  if (::fchown(fd, uid, gid) < 0) return Failure(Text("fchown (fd ", fd, ") to ", uid, ":", gid));
  return Ok();
}

Status Rename(int dir_fd, const std::string& from, const std::string& to) {
  TRY(RefuseNul("rename", from));
  TRY(RefuseNul("rename", to));
  if (::renameat(dir_fd, from.c_str(), dir_fd, to.c_str()) < 0)
    return Failure(Named("rename", from, dir_fd));
  return Ok();
}

Result<std::vector<DirectoryEntry>> ListDirectory(int dir_fd, std::size_t limit) {
  int own = ::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return Failure(Named("open", ".", dir_fd));
  UniqueFd owner(own);
  return ReadDirectory(own, limit);
}

Result<std::vector<DirectoryEntry>> ReadDirectory(int fd, std::size_t limit) {
  std::vector<DirectoryEntry> entries;
  alignas(struct dirent64) std::array<char, 16384> records;
  while (true) {
    ssize_t got = ::getdents64(fd, records.data(), records.size());
    if (got < 0) return Failure(Text("getdents64 (dir fd ", fd, ")"));
    if (got == 0) return entries;
    for (ssize_t at = 0; at < got;) {
      const auto* record =
          reinterpret_cast<const struct dirent64*>(&records[static_cast<std::size_t>(at)]);
      at += record->d_reclen;
      std::string_view name = record->d_name;
      if (name == "." || name == "..") continue;
      if (entries.size() == limit) {
        return Error(Kind::kViolation,
                     Text("directory fd ", fd, " holds more than ", limit, " entries"), EFBIG);
      }
      entries.push_back({std::string(name), record->d_type});
    }
  }
}

Status SpreadDirectories(int dir_fd) {
  int flags = 0;
  if (::ioctl(dir_fd, FS_IOC_GETFLAGS, &flags) < 0)
    return Failure(Text("ioctl FS_IOC_GETFLAGS (fd ", dir_fd, ")"));
  if ((flags & FS_TOPDIR_FL) != 0) return Ok();
  flags |= FS_TOPDIR_FL;
  if (::ioctl(dir_fd, FS_IOC_SETFLAGS, &flags) < 0)
    return Failure(Text("ioctl FS_IOC_SETFLAGS (fd ", dir_fd, ")"));
  return Ok();
}

Result<std::string> ReadLink(int dir_fd, const std::string& path) {
  TRY(RefuseNul("readlink", path));
  std::array<char, PATH_MAX> target;
  ssize_t length = ::readlinkat(dir_fd, path.c_str(), target.data(), target.size());
  if (length < 0) return Failure(Named("readlink", path, dir_fd));
  return std::string(target.data(), static_cast<std::size_t>(length));
}

Result<std::string> ReadAttribute(int fd, const char* name) {
  std::array<char, 4096> value;
  ssize_t length = ::fgetxattr(fd, name, value.data(), value.size());
  if (length < 0) return Failure(Text("fgetxattr '", name, "' (fd ", fd, ")"));
  return std::string(value.data(), static_cast<std::size_t>(length));
}

Status MakeSymbolicLink(const std::string& target, int dir_fd, const std::string& path) {
  TRY(RefuseNul("symlink", target));
  TRY(RefuseNul("symlink", path));
  if (::symlinkat(target.c_str(), dir_fd, path.c_str()) < 0)
    return Failure(Named("symlink", path, dir_fd));
  return Ok();
}

Result<Pipe> MakePipe(int flags) {
  int ends[2];
  if (::pipe2(ends, flags | O_CLOEXEC) < 0) return Failure("pipe2");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<UniqueFd> MakeMemfd(const char* name, unsigned flags) {
  int fd = ::memfd_create(name, flags | MFD_CLOEXEC);
  if (fd < 0) return Failure(Text("memfd_create '", name, "'"));
  return UniqueFd(fd);
}

Status Lock(int fd, int operation) {
  while (::flock(fd, operation) < 0) {
    int err = errno;
    if (err != EINTR) return FailureOf(err, Text("flock (fd ", fd, ")"));
  }
  return Ok();
}

bool LockNamed(int fd, int operation, int parent_fd, const std::string& name) {
  if (!Lock(fd, operation | LOCK_NB).ok()) return false;
  Result<struct stat> locked = Stat(fd);
  Result<struct stat> named = StatAt(parent_fd, name);
  return locked.ok() && named.ok() && locked->st_dev == named->st_dev &&
         locked->st_ino == named->st_ino;
}

Status CheckAccess(int dir_fd, const std::string& path, int mode) {
  TRY(RefuseNul("faccessat", path));
  if (::faccessat(dir_fd, path.c_str(), mode, AT_EACCESS) < 0)
    return Failure(Named("faccessat", path, dir_fd));
  return Ok();
}

}  // namespace taskcell::sys

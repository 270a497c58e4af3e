#pragma once

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// Paths with a NUL byte are refused everywhere; every descriptor made here is CLOEXEC.

// How an untrusted name below a directory is opened: nothing outside it, no link of any kind. The
// last component may still be a link when O_PATH|O_NOFOLLOW is asked: fstat the result (measured;
// also kernel selftests/openat2).
inline constexpr uint64_t kResolveBeneath =
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

// openat2(2), EAGAIN retried up to 128 times (a rename raced with the walk). Where a kernel or a
// filter lacks the call (ENOSYS, EPERM), the same by WalkPath. `dir_fd` may be AT_FDCWD. Never with
// O_TRUNC: what is truncated is to be looked at first.
Result<UniqueFd> OpenAt2(int dir_fd, const std::string& path, int flags, uint64_t resolve,
                         mode_t mode = 0);

// From now on this process, and what it forks, does not call openat2 but walks: where a filter
// kills whoever calls it. To be called before there are threads.
void AvoidOpenat2();

// open(2) of a path the caller trusts (below /proc, /sys or one it made).
Result<UniqueFd> Open(const std::string& path, int flags, mode_t mode = 0);

// fcntl(F_DUPFD_CLOEXEC, at_least).
Result<UniqueFd> Duplicate(int fd, int at_least = 3);

// Clears CLOEXEC, so that the next exec keeps `fd` at its number.
Status KeepOnExec(int fd);

// Reads until end of file; an Error of kind kViolation names `limit` when there is more than
// `limit` bytes.
Result<std::string> ReadAll(int fd, std::size_t limit);

// The same, waiting at most `timeout_ms` altogether for what has not come yet (-1: for ever); an
// Error with err ETIMEDOUT after that. Also of a descriptor that does not block.
Result<std::string> ReadAllWithin(int fd, std::size_t limit, int timeout_ms);

// Opens `path` below `dir_fd` (kResolveBeneath for a real directory, plain for AT_FDCWD) and reads
// it whole, at most `limit` bytes. Never blocks on a FIFO (O_NONBLOCK).
Result<std::string> ReadFile(int dir_fd, const std::string& path, std::size_t limit);

// One read(2), EINTR retried; 0 at end of file.
Result<std::size_t> Read(int fd, std::span<char> buffer);

// One pread(2) from `offset`, EINTR retried; 0 at end of file.
Result<std::size_t> ReadAt(int fd, std::span<char> buffer, int64_t offset);

// Writes all of `data`, EINTR retried.
Status WriteAll(int fd, std::string_view data);

// One write(2) of `data` into an existing control file below `dir_fd` (cgroup, sysctl, uid_map); a
// short write is an error.
Status WriteControl(int dir_fd, const std::string& path, std::string_view data);

// fstat(2).
Result<struct stat> Stat(int fd);
// True when a POSIX access control list is set on `fd`, which may be O_PATH.
Result<bool> HasAccessList(int fd);
// fstatat(2) with AT_SYMLINK_NOFOLLOW.
Result<struct stat> StatAt(int dir_fd, const std::string& path);

// mknodat(2) of a new, empty plain file.
Status MakeFile(int dir_fd, const std::string& path, mode_t mode);
Status MakeDirectory(int dir_fd, const std::string& path, mode_t mode);
Status RemoveFile(int dir_fd, const std::string& path);
Status RemoveDirectory(int dir_fd, const std::string& path);
Status Truncate(int fd, int64_t size);
Status ChangeMode(int fd, mode_t mode);
// fchmodat(2) of an entry of a directory the caller alone can write: follows a link.
Status ChangeModeAt(int dir_fd, const std::string& path, mode_t mode);
Status ChangeOwner(int fd, uid_t uid, gid_t gid);
Status Rename(int dir_fd, const std::string& from, const std::string& to);

// One entry of a directory; type is DT_REG, DT_DIR, ... or DT_UNKNOWN.
struct DirectoryEntry {
  std::string name;
  unsigned char type;
};
// Lists a directory without "." and "..", at most `limit` entries (more is kViolation). `dir_fd`
// keeps its offset.
Result<std::vector<DirectoryEntry>> ListDirectory(int dir_fd, std::size_t limit);
// The same from the offset of `fd` on, a directory open for reading; moves it to the end.
Result<std::vector<DirectoryEntry>> ReadDirectory(int fd, std::size_t limit);

// Asks the file system of a directory (FS_TOPDIR_FL) to keep what is made in each of its
// directories apart from the others: ext4 looks one by one at the inodes that were freed near a new
// one within the last minute, so that copying a tree where one was just removed takes it a second.
Status SpreadDirectories(int dir_fd);

// readlinkat(2); the result is at most PATH_MAX bytes.
Result<std::string> ReadLink(int dir_fd, const std::string& path);

// fgetxattr(2), at most 4 KiB. ENODATA: there is no such attribute.
Result<std::string> ReadAttribute(int fd, const char* name);

// symlinkat(2): makes `path` below `dir_fd` a link to `target`, which need not exist.
Status MakeSymbolicLink(const std::string& target, int dir_fd, const std::string& path);

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};
Result<Pipe> MakePipe(int flags = 0);

// memfd_create(2) with MFD_CLOEXEC and the flags given.
Result<UniqueFd> MakeMemfd(const char* name, unsigned flags);

// flock(2). `operation` as there, LOCK_EX | LOCK_NB for instance.
Status Lock(int fd, int operation);

// Takes the lock of a directory without waiting (LOCK_EX or LOCK_SH) and tells whether `name` below
// `parent_fd` is still that directory. False: another process holds it, or removed it after it was
// opened, and what has its name now is another one. Whoever removes by name what others may make
// again needs both.
bool LockNamed(int fd, int operation, int parent_fd, const std::string& name);

// faccessat(2) with the effective ids: an Error when `path` may not be used for `mode` (W_OK, ...).
// For messages and choices only, never as a check before use.
Status CheckAccess(int dir_fd, const std::string& path, int mode);

}  // namespace taskcell::sys

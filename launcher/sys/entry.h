#pragma once

#include <linux/stat.h>
#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// Looking at the entries of a directory one by one, as a walk over a large tree does: no list is
// made, and the names are read where the kernel wrote them.

// What StatEntry asks for: all that a verdict on an entry needs.
inline constexpr unsigned kEntryMask = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID |
                                       STATX_GID | STATX_INO | STATX_SIZE | STATX_CTIME |
                                       STATX_BLOCKS | STATX_MNT_ID;

// statx(2) of `name` below `dir_fd`, or of `dir_fd` itself where it is "". A link is not followed
// and no automount is triggered. `sync` is 0, or AT_STATX_DONT_SYNC: then a file system that would
// ask a server or a process answers from what it knows, and cannot hang.
Status StatEntry(int dir_fd, const char* name, int sync, struct statx& info);

// One number for makedev(3)'s pair in a struct statx, as struct stat has it.
uint64_t DeviceOf(const struct statx& info);

// openat(2) with O_NOFOLLOW of `name` below `dir_fd`: for one component, where openat2 is not to be
// had or a mount may be crossed. With O_PATH a link is returned itself.
Result<UniqueFd> OpenNoFollow(int dir_fd, const std::string& name, int flags, mode_t mode = 0);

// One getdents64(2): fills `buffer` with records, 0 at the end of the directory.
Result<std::size_t> ReadRecords(int fd, std::span<char> buffer);

// lseek(2) of a directory to the d_off of a record: the next one read is the one behind it.
Status SeekRecords(int fd, int64_t offset);

// lgetxattr(2) of `name` below `dir_fd`, a link not followed: whether it has the attribute. Of what
// `dir_fd` itself is where `name` is "". Goes by way of /proc/self/fd, since the call takes paths
// only. CRITICAL: only where /proc is a procfs (IsProc).
Result<bool> HasAttribute(int dir_fd, const char* name, const char* attribute);

// The names of the attributes of the same, in the same way: each ended by NUL, at most 64 KiB.
// Empty where the file system has none.
Result<std::string> AttributeNames(int dir_fd, const char* name);

// faccessat(2) with the effective ids: whether this process may open `name` below `dir_fd` for
// reading, without opening it (a FIFO would get a reader). A link is not followed.
Result<bool> IsReadable(int dir_fd, const char* name);

// flistxattr(2): the same of `fd`, which is open for reading, and without /proc.
Result<std::string> AttributeNames(int fd);

// True when what is mounted at /proc is a procfs that knows this process.
bool IsProc();

}  // namespace taskcell::sys

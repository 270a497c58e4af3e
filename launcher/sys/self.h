#pragma once

#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::sys {

// What a process can ask the kernel about itself and about its own descriptors.

// prctl(PR_GET_DUMPABLE): 1 when others of this uid may look into this process.
Result<bool> IsDumpable();

// PR_SET_DUMPABLE 1: the process's files below /proc belong to its own ids again.
Status SetDumpable();

// Sets soft and hard limit of `resource` (RLIMIT_*) to `value`.
Status SetResourceLimit(int resource, uint64_t value);

// Raises the soft limit of `resource` to the hard one.
Status RaiseResourceLimit(int resource);

// The soft limit of `resource`, when it equals the hard one; the hard limit otherwise, since a
// process may raise itself to that. RLIM_INFINITY is ~0.
Result<uint64_t> ResourceLimit(int resource);

// stat(2) of /proc/self/ns/`name`: what tells namespaces apart.
Result<struct stat> StatNamespace(std::string_view name);

// gethostname(2).
Result<std::string> HostName();
// uname(2): "x86_64", "aarch64", ...
Result<std::string> MachineName();

// fstatfs(2): the magic number of the file system `fd` is on, its size (blocks times block size)
// and what an ordinary user may still write. `fd` may be O_PATH.
struct FileSystem {
  uint64_t type = 0;
  uint64_t size_bytes = 0;
  uint64_t free_bytes = 0;
};
Result<FileSystem> FileSystemOf(int fd);

// fcntl(F_GETFL): O_RDONLY, O_WRONLY or O_RDWR, or O_PATH.
Result<uint32_t> AccessMode(int fd);

// fcntl(F_GETFL), and F_SETFL of what of it can be set. They belong to the open file, which other
// processes may share.
Result<int> StatusFlags(int fd);
Status SetStatusFlags(int fd, int flags);

// getpid(2).
int32_t OwnPid();
// getppid(2).
int32_t ParentPid();

// fcntl(F_SETFD, FD_CLOEXEC): fails when `fd` is not open.
Status CloseOnExec(int fd);

// SIOCGIFFLAGS: IFF_* of an interface of this network namespace; `socket` is any socket.
Result<uint32_t> InterfaceFlags(int socket, const std::string& name);

// getrusage(RUSAGE_CHILDREN): what all children reaped so far used, their descendants included.
struct Usage {
  uint64_t user_us = 0;
  uint64_t system_us = 0;
};
Result<Usage> ChildrenUsage();
// getrusage(2): what the calling process and the children it reaped used.
Result<Usage> OwnUsage();

// chdir(2).
Status ChangeDirectory(const std::string& path);

}  // namespace taskcell::sys

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// What openat2(2) does, for kernels and filters without that call: `path` is resolved here, one
// component after the other, each opened with O_NOFOLLOW below the descriptor of the one before, so
// that "..", links and mounts are decided here and whoever renames meanwhile leads nowhere else.
// `resolve` is any of RESOLVE_BENEATH, IN_ROOT, NO_SYMLINKS, NO_MAGICLINKS, NO_XDEV, and the errors
// are openat2's: EXDEV, ELOOP, ENOTDIR, ... Stricter than the kernel: on procfs only links in its
// root are followed (of others it cannot be seen whether they are magic), and fs.protected_symlinks
// always holds (proc_sys_fs(5)). `flags` as for OpenAt2.
Result<UniqueFd> WalkPath(int dir_fd, const std::string& path, int flags, uint64_t resolve,
                          mode_t mode);

}  // namespace taskcell::sys

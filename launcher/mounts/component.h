#pragma once

#include <cstdint>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::mounts {

enum class Crossing : uint8_t { kNever, kOtherMounts };

// Opens the one component `name` of the directory `dir_fd`: no link is followed (ELOOP; with O_PATH
// one is returned itself: fstat the result) and, unless allowed, no mount is entered (EXDEV).
// With openat2(2); where a kernel or a filter refuses that call (ENOSYS, EPERM) by pinning the name
// with O_PATH|O_NOFOLLOW, comparing the mount, and proving that what is opened then is the pinned
// inode (EAGAIN where it is not).
Result<UniqueFd> OpenComponent(int dir_fd, const std::string& name, int flags,
                               Crossing crossing = Crossing::kNever);

}  // namespace taskcell::mounts

#pragma once

#include <cstdint>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::mounts {

enum class Crossing : uint8_t { kNever, kOtherMounts };

// Opens the one component `name` of the directory `dir_fd`: no link is followed (ELOOP; with O_PATH
// one is returned itself: fstat the result) and, unless allowed, no mount is entered (EXDEV). By
// sys::OpenAt2, with or without openat2(2).
Result<UniqueFd> OpenComponent(int dir_fd, const std::string& name, int flags,
                               Crossing crossing = Crossing::kNever);

}  // namespace taskcell::mounts

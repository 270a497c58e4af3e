#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::native {

// Another program of ours.
struct OwnProgram {
  UniqueFd fd;  // O_PATH
  std::string path;
};

inline constexpr std::string_view kInitName = "taskcell-init";

// Opens the program `name`: beside this one, else in ../libexec/taskcell.
// Refuses one that is not of root or of this program's owner, or that others may write.
Result<OwnProgram> OpenOwnProgram(std::string_view name);

}  // namespace taskcell::native

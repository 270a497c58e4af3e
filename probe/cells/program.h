#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::probe {

// The canonical path (mounts are planned without links) of one of our own programs: beside this
// one, else in ../libexec/taskcell. Error code workspace_failed.
Result<std::string> FindProgram(std::string_view name);

}  // namespace taskcell::probe

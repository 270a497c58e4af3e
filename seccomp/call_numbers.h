#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "seccomp/default_filter.h"

namespace taskcell::seccomp {

// Returns the number of system call `name` on `architecture`; nothing where that architecture has
// no such call.
std::optional<uint32_t> CallNumber(Architecture architecture, const std::string& name);

// True when `name` is a system call on some architecture of Linux.
bool IsCallName(const std::string& name);

}  // namespace taskcell::seccomp

#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "seccomp/default_filter.h"

namespace taskcell::seccomp {

// A user's own profile, ready to install.
struct LoadedProfile {
  // The SECCOMP_RET_* answer to a call no rule names. A profile that allows by default is loaded
  // like any other: whether that will do is for the caller to decide.
  uint32_t default_action = 0;
  std::vector<sock_filter> code;
};

// Loads a profile in Docker's JSON format (at most kMaxProfileBytes) for `architecture`, with what
// no profile may allow added (never_allowed.h). Nothing on failure, with the reason for a person in
// `error`. What is refused: see ParseProfile and BuildFilter.
std::optional<LoadedProfile> LoadProfile(std::string_view json, Architecture architecture,
                                         std::string& error);

}  // namespace taskcell::seccomp

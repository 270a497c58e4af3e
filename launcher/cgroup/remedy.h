#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cgroup/layout.h"

namespace taskcell::cgroup {

inline constexpr std::string_view kUnenforced = "resource_limits_unenforced";

// "memory", "memory and pids", "memory, pids and cpu". Pure.
std::string Names(const std::vector<Controller>& controllers);

// The directory below a mount point that root hands to one user. Pure.
std::string DelegatedBelow(uid_t uid);

// What to say where a cell does not even start within its memory limit. Pure.
std::string TooLittleMemory(uint64_t bytes);

// Makes `cause` the error of a limit that can't be enforced: names the controllers, keeps the kind
// and errno, and carries the code. An error that has the code already stays as it is.
Error Unenforced(const std::vector<Controller>& controllers, Error cause);

// `refusal`, with why `scope` (EnterOwnScope), in which the limits might have held, could not be
// had. Pure.
Error WithoutScope(Error refusal, const Error& scope);

}  // namespace taskcell::cgroup

#pragma once

#include <linux/filter.h>

#include <optional>
#include <string>
#include <vector>

#include "seccomp/default_filter.h"
#include "seccomp/profile.h"

namespace taskcell::seccomp {

// Compiles `profile` for one architecture: a binary search over ranges of call numbers with one
// answer, then that call's argument tests.
//   - Calls of another architecture (on x86_64 also x32) kill the process, whatever the profile
//   says.
//   - Where the default action is an errno, calls above the newest one the profile names answer
//     ENOSYS, so that a C library falls back as on an older kernel.
//   - A name no architecture knows is an error when its rule is stricter than the default (the rule
//     could not be kept), and is skipped otherwise.
// Nothing on failure, with the reason in `error`; never more than BPF_MAXINSNS instructions.
std::optional<std::vector<sock_filter>> BuildFilter(const Profile& profile,
                                                    Architecture architecture, std::string& error);

}  // namespace taskcell::seccomp

#pragma once

#include <linux/filter.h>

#include <vector>

#include "seccomp/profile.h"

namespace taskcell::seccomp {

// Appends the code of one rule: it returns the rule's action when every condition holds, and goes
// on behind its own end when one does not. Every jump stays inside, so the code can stand anywhere.
void AppendTests(const Rule& rule, std::vector<sock_filter>& code);

}  // namespace taskcell::seccomp

#pragma once

#include "launcher/base/result.h"

namespace taskcell::native {

// Turns the Error of making the cell's namespaces into one that names what is in the way and who
// must act: the kernel's own words mislead (a limit of 0 is "No space left on device"). Reads the
// sysctls of this host; blames AppArmor only where its restriction exists and is on. What only the
// host can give then has the code namespaces_unavailable.
Error ExplainNamespaceFault(Error error);

}  // namespace taskcell::native

#pragma once

#include <linux/filter.h>

#include "launcher/base/result.h"

namespace taskcell::sys {

// Installs a seccomp filter on the calling process (which must have one thread) for good; every
// program it starts inherits it. CRITICAL: needs prctl(PR_SET_NO_NEW_PRIVS) before, or
// CAP_SYS_ADMIN; the kernel refuses it otherwise (EACCES). Nothing is installed after a failure.
Status InstallSeccomp(const sock_filter* code, unsigned short length);

// prctl(PR_GET_SECCOMP): 0 no filter, 2 filter. A filter that denies prctl makes it fail.
Result<int> SeccompMode();

}  // namespace taskcell::sys

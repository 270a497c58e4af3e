#pragma once

#include <sys/types.h>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// For processes that are not children of ours. pidfd_open(2); ESRCH: no such process, also where
// its id lives on as that of its process group or session.
Result<UniqueFd> OpenPidfd(pid_t pid);

// pidfd_send_signal(2). ESRCH: it has ended.
Status SignalPidfd(int pidfd, int signal);

}  // namespace taskcell::sys

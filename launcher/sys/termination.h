#pragma once

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// Makes SIGINT, SIGTERM and SIGHUP write into a pipe instead of ending this process, and returns
// its reading end: readable once one of them came. One that the process ignores (nohup(1)) stays
// ignored. The handlers do not outlive an exec, so that programs started later are not affected. To
// be called once.
Result<UniqueFd> CatchTermination();

}  // namespace taskcell::sys

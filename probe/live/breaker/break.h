#pragma once

#include "launcher/base/result.h"
#include "probe/live/payload.h"

namespace taskcell::live {

// Does one attempt in the calling process, which must have one thread, and undoes it. An Error
// means that it could not be tried at all; being stopped by a limit is a Finding.
Result<Finding> Break(const Attempt& attempt);

}  // namespace taskcell::live

#pragma once

#include "launcher/base/result.h"

namespace taskcell::sys {

// fsync(2) of a file or directory.
Status Synchronize(int fd);

}  // namespace taskcell::sys

#pragma once

#include "launcher/base/result.h"

namespace taskcell::sys {

// ioctl(FICLONE): makes `to` share all blocks of `from`. False when the file system or this pair of
// files cannot; both are unchanged then.
Result<bool> CloneContent(int to, int from);

// lseek(2) to the start.
Status Rewind(int fd);

}  // namespace taskcell::sys

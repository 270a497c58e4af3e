#pragma once

#include <cstdint>

#include "launcher/base/result.h"

namespace taskcell::sys {

// The number of the mount `fd` (O_PATH will do) is on, as mountinfo has it: from statx(2), before
// Linux 5.8 from /proc/self/fdinfo.
Result<uint64_t> MountIdOf(int fd);
// The second alone.
Result<uint64_t> MountIdFromProc(int fd);
// True where the first of them needs no /proc (Linux 5.8). Before 5.14 the files of fdinfo are for
// their owner alone, who is root while a process is not dumpable.
bool MountIdIsToldByStat();

}  // namespace taskcell::sys

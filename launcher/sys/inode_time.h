#pragma once

#include <cstdint>
#include <ctime>

#include "launcher/base/result.h"

namespace taskcell::sys {

// CLOCK_REALTIME_COARSE, the clock that the times of inodes are taken from.
struct timespec InodeClock();

// CLOCK_REALTIME minus CLOCK_BOOTTIME in milliseconds: less than before where the clock was set
// back in between.
int64_t ClockOffsetMs();

// clock_nanosleep(2) of a millisecond, by CLOCK_MONOTONIC; less where a signal comes.
void SleepMs();

// futimens(2): the time of last modification of `fd` becomes now.
Status SetModifiedNow(int fd);

}  // namespace taskcell::sys

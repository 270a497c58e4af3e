#pragma once

#include <sys/stat.h>

#include <ctime>

#include "launcher/base/result.h"

namespace taskcell::mounts {

// Change times come from a clock that ticks every few milliseconds, so that a second change within
// a tick may leave no trace. What was last changed before SettledBefore() cannot be changed from
// now on without a later change time, as long as the clock is not set back.
struct timespec SettledBefore();

// fstat(2) of a file from a moment on in which every change sets another change time than the one
// returned: waits for the next tick where the file was changed in this one. Not for long: a file
// whose change time lies in the future is returned as it is.
Result<struct stat> StatSettled(int fd);

bool IsEarlier(const struct timespec& a, const struct timespec& b);

}  // namespace taskcell::mounts

#pragma once

#include <sys/stat.h>

#include <ctime>

#include "launcher/base/result.h"

namespace taskcell::mounts {

// Change times come from a clock that ticks every few milliseconds, so that a second change within
// a tick may leave no trace. What was last changed before SettledBefore() cannot be changed from
// now on without a later change time, as long as the clock is not set back, and the file system
// keeps the times of that clock as they are: MayBeCut and HasForeignTimes say where it does not.
struct timespec SettledBefore();

// True of a change time without nanoseconds: it may have been cut down to whole seconds, two at the
// most (ext3, ext4 with inodes of 128 bytes, HFS+). A later change may leave the same one then, or
// one from before SettledBefore(). Once in a while true of one that was not cut.
bool MayBeCut(const struct timespec& changed);
// As late as anything can have been changed that bears this change time.
struct timespec LatestOf(const struct timespec& changed);

// True where the times of the files of the mount `fd` is on come from the clock of a process or of
// another host, or nobody can tell.
bool HasForeignTimes(int fd);

// fstat(2) of a file from a moment on in which every change sets another change time than the one
// returned, where times are neither cut nor foreign: waits for the next tick where the file was
// changed in this one. Not for long: a file whose change time lies in the future is returned as it
// is.
Result<struct stat> StatSettled(int fd);

bool IsEarlier(const struct timespec& a, const struct timespec& b);

}  // namespace taskcell::mounts

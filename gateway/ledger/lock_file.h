#pragma once

#include <chrono>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// flock(2) of an open file for its holder alone, tried for at most `wait`; an Error with err
// EWOULDBLOCK when somebody else held it all the while.
Status LockWithin(int fd, std::chrono::milliseconds wait);

// Opens <home>/<path>, which is made (0600) where it is missing and must be a plain file, and locks
// it as LockWithin does. The kernel gives the lock back whatever ends this process.
Result<UniqueFd> OpenLocked(int home_fd, const std::string& path, std::chrono::milliseconds wait);

// The same with <home>/locks/<name>; the directory is made (0700) where it is missing.
Result<UniqueFd> TakeHomeLock(int home_fd, const std::string& name,
                              std::chrono::milliseconds wait = std::chrono::milliseconds(0));

}  // namespace taskcell::gateway

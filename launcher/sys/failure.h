#pragma once

#include <string>

#include "launcher/base/result.h"

namespace taskcell::sys {

// Makes the Error of a failed system call: reads errno at once, so it must stand in the statement
// after the call. `call` names the call with its arguments ("openat2 'etc/passwd' (dir fd 7)"); the
// text becomes "<call>: <reason>". EPERM and EACCES are kDenied, ENOSYS is kUnsupported, the rest
// kSystem.
Error Failure(std::string call, const char* file = __builtin_FILE(), int line = __builtin_LINE());

// The same for an error number that came by another way than errno (a report from a child, an
// answer).
Error FailureOf(int err, std::string call, const char* file = __builtin_FILE(),
                int line = __builtin_LINE());

}  // namespace taskcell::sys

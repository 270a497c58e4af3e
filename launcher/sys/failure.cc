#include "launcher/sys/failure.h"

#include <cerrno>
#include <cstring>

namespace taskcell::sys {

Error Failure(std::string call, const char* file, int line) {
  return FailureOf(errno, std::move(call), file, line);
}

Error FailureOf(int err, std::string call, const char* file, int line) {
  Kind kind = Kind::kSystem;
  if (err == EPERM || err == EACCES) kind = Kind::kDenied;
  if (err == ENOSYS) kind = Kind::kUnsupported;
  const char* reason = ::strerrordesc_np(err);
  call += ": ";
  call += reason != nullptr ? reason : "unknown error";
  return Error(kind, std::move(call), err, file, line);
}

}  // namespace taskcell::sys

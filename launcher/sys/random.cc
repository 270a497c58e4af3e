#include "launcher/sys/random.h"

#include <sys/random.h>

#include <cerrno>

#include "launcher/sys/failure.h"

namespace taskcell::sys {

Status FillRandom(std::span<unsigned char> buffer) {
  while (!buffer.empty()) {
    ssize_t got = ::getrandom(buffer.data(), buffer.size(), 0);
    if (got < 0) {
      int err = errno;
      if (err == EINTR) continue;
      return FailureOf(err, "getrandom");
    }
    buffer = buffer.subspan(static_cast<std::size_t>(got));
  }
  return Ok();
}

}  // namespace taskcell::sys

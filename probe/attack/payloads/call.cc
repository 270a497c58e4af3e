#include "probe/attack/payloads/call.h"

#include <fcntl.h>
#include <sys/syscall.h>

#include "launcher/base/unique_fd.h"

namespace taskcell::attack {

int64_t OpenFile(const std::string& path, int flags) {
  constexpr int kPrivate = 0600;
  return Call(SYS_openat, AT_FDCWD, path.c_str(), flags | O_CLOEXEC, kPrivate);
}

Attempted TryOpening(const std::string& path, int flags) {
  int64_t opened = OpenFile(path, flags);
  UniqueFd closes_it(opened < 0 ? -1 : static_cast<int>(opened));
  return Of(opened, path);
}

Attempted TryReading(const std::string& path) {
  int64_t opened = OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (opened < 0) return Of(opened, path);
  UniqueFd file(static_cast<int>(opened));
  char byte = 0;
  int64_t size = Call(SYS_read, file.get(), &byte, 1);
  if (size == 0) return {kCovered, path};
  return Of(size, path);
}

}  // namespace taskcell::attack

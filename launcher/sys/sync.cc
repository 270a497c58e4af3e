#include "launcher/sys/sync.h"

#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {

Status Synchronize(int fd) {
  if (::fsync(fd) < 0) return Failure(Text("fsync (fd ", fd, ")"));
  return Ok();
}

}  // namespace taskcell::sys

#include "launcher/sys/copy.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {

Result<bool> CloneContent(int to, int from) {
  if (::ioctl(to, FICLONE, from) == 0) return true;
  int err = errno;
  // ioctl_ficlone(2): the reasons that only mean "copy it yourself".
  if (err == EOPNOTSUPP || err == EXDEV || err == EINVAL || err == ENOTTY || err == ENOSYS ||
      err == ETXTBSY || err == EPERM)
    return false;
  return FailureOf(err, Text("ioctl FICLONE (fd ", to, " from fd ", from, ")"));
}

Status Rewind(int fd) {
  if (::lseek(fd, 0, SEEK_SET) < 0) return Failure(Text("lseek (fd ", fd, ")"));
  return Ok();
}

}  // namespace taskcell::sys

#include "launcher/sys/copy.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"

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

Status CopyContent(int to, int from, std::size_t limit) {
  std::size_t left = limit + 1;  // one more, to tell a file of just that size from a larger one
  while (left > 0) {
    ssize_t got = ::sendfile(to, from, nullptr, left);
    if (got == 0) return Ok();
    if (got > 0) {
      left -= static_cast<std::size_t>(got);
      continue;
    }
    int err = errno;
    if (err == EINTR) continue;
    if (err != EINVAL && err != ENOSYS)
      return FailureOf(err, Text("sendfile (fd ", to, " from fd ", from, ")"));
    std::string rest = TRY(ReadAll(from, left - 1));
    return WriteAll(to, rest);
  }
  return Error(Kind::kViolation, Text("fd ", from, " holds more than ", limit, " bytes"), EFBIG);
}

Status Rewind(int fd) {
  if (::lseek(fd, 0, SEEK_SET) < 0) return Failure(Text("lseek (fd ", fd, ")"));
  return Ok();
}

}  // namespace taskcell::sys

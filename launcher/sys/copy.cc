#include "launcher/sys/copy.h"

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>

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

namespace {

Result<uint64_t> CopyByReading(int to, int from, uint64_t size) {
  std::array<char, 65536> chunk;
  uint64_t copied = 0;
  while (copied < size) {
    std::size_t want = std::min<uint64_t>(size - copied, chunk.size());
    std::size_t got = TRY(Read(from, std::span(chunk.data(), want)));
    if (got == 0) break;
    TRY(WriteAll(to, std::string_view(chunk.data(), got)));
    copied += got;
  }
  return copied;
}

}  // namespace

Result<uint64_t> CopyRange(int to, int from, uint64_t size) {
  uint64_t copied = 0;
  while (copied < size) {
    ssize_t got = ::copy_file_range(from, nullptr, to, nullptr, size - copied, 0);
    if (got > 0) {
      copied += static_cast<uint64_t>(got);
      continue;
    }
    if (got == 0) break;
    int err = errno;
    if (err == EINTR) continue;
    // copy_file_range(2): another file system, or one that has none; a filter may refuse it.
    bool by_reading = err == EXDEV || err == EINVAL || err == EOPNOTSUPP || err == ENOSYS ||
                      err == EPERM || err == ETXTBSY;
    if (!by_reading)
      return FailureOf(err, Text("copy_file_range (fd ", to, " from fd ", from, ")"));
    return copied + TRY(CopyByReading(to, from, size - copied));
  }
  return copied;
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

Status CopyOffset(int to, int from) {
  off_t offset = ::lseek(from, 0, SEEK_CUR);
  if (offset < 0) return Failure(Text("lseek (fd ", from, ")"));
  if (::lseek(to, offset, SEEK_SET) < 0) return Failure(Text("lseek (fd ", to, ")"));
  return Ok();
}

Status Rewind(int fd) {
  if (::lseek(fd, 0, SEEK_SET) < 0) return Failure(Text("lseek (fd ", fd, ")"));
  return Ok();
}

}  // namespace taskcell::sys

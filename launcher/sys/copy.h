#pragma once

#include <cstddef>
#include <cstdint>

#include "launcher/base/result.h"

namespace taskcell::sys {

// ioctl(FICLONE): makes `to` share all blocks of `from`. False when the file system or this pair of
// files cannot; both are unchanged then.
Result<bool> CloneContent(int to, int from);

// copy_file_range(2) of `size` bytes from the offsets of both files on, read() and write() where
// the two file systems or the kernel have none. Fewer bytes where `from` ends before: returns how
// many.
Result<uint64_t> CopyRange(int to, int from, uint64_t size);

// sendfile(2) of the rest of `from`, read() and write() where the file system of `from` has none.
// More than `limit` bytes: kViolation with EFBIG, and at most one byte above `limit` was written.
Status CopyContent(int to, int from, std::size_t limit);

// lseek(2) of `to` to where `from` is.
Status CopyOffset(int to, int from);

// lseek(2) to the start.
Status Rewind(int fd);

}  // namespace taskcell::sys

#include "launcher/mounts/file_copier.h"

#include <fcntl.h>

#include "launcher/base/unique_fd.h"
#include "launcher/sys/copy.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"

namespace taskcell::mounts {
namespace {

bool IsSameTime(const struct timespec& a, const struct timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool IsUnchanged(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && IsSameTime(a.st_mtim, b.st_mtim) &&
         IsSameTime(a.st_ctim, b.st_ctim);
}

}  // namespace

// Exactly the size that was judged; false when the file turned out shorter.
Result<bool> FileCopier::CopyBytes(int to, int from, uint64_t size) {
  if (size == 0) return true;
  if (can_clone_) {
    can_clone_ = TRY(sys::CloneContent(to, from));
    if (can_clone_) return static_cast<uint64_t>(TRY(sys::Stat(to)).st_size) == size;
  }
  return TRY(sys::CopyRange(to, from, size)) == size;
}

Result<bool> FileCopier::CopyOnce(int to_dir, const std::string& name, int from,
                                  const struct stat& before, const LinkScan* links) {
  // Made anew in a directory of the caller's own.
  UniqueFd to = TRY(sys::OpenNoFollow(to_dir, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
  bool whole = TRY(CopyBytes(to.get(), from, static_cast<uint64_t>(before.st_size)));
  struct stat after = TRY(sys::Stat(from));
  // A link made meanwhile counts: content and links must hold to the end of the copy. Without a
  // name it is what a save has replaced, whole, or on a file system that counts no names.
  bool linked = links == nullptr ? after.st_nlink > 1 : !links->IsClosed(after);
  if (whole && !linked && IsUnchanged(before, after)) {
    TRY(sys::ChangeMode(to.get(), 0444));
    return true;
  }
  TRY(sys::RemoveFile(to_dir, name));
  return false;
}

}  // namespace taskcell::mounts

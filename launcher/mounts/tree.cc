#include "launcher/mounts/tree.h"

#include <fcntl.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/mounts/component.h"
#include "launcher/sys/file.h"

namespace taskcell::mounts {
namespace {

Status RemoveBelow(int dir_fd, const std::string& name, int depth) {
  Result<struct stat> info = sys::StatAt(dir_fd, name);
  if (!info.ok()) {
    if (info.error().err == ENOENT) return Ok();
    return std::move(info).error();
  }
  if (!S_ISDIR(info->st_mode)) return sys::RemoveFile(dir_fd, name);
  if (depth == kMaxRemovedDepth) {
    return Error(Kind::kViolation, Text("'", Printable(name), "' lies deeper than ",
                                        kMaxRemovedDepth, " levels: not removed"));
  }
  UniqueFd dir = TRY(OpenComponent(dir_fd, name, O_RDONLY | O_DIRECTORY));
  TRY(sys::ChangeMode(dir.get(), 0700));
  for (const sys::DirectoryEntry& entry : TRY(sys::ListDirectory(dir.get(), kMaxRemovedEntries)))
    TRY(RemoveBelow(dir.get(), entry.name, depth + 1));
  return sys::RemoveDirectory(dir_fd, name);
}

}  // namespace

Status RemoveTree(int dir_fd, const std::string& name) {
  return RemoveBelow(dir_fd, name, 0).With(Text("remove '", Printable(name), "'"));
}

}  // namespace taskcell::mounts

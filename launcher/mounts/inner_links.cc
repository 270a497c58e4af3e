#include "launcher/mounts/inner_links.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/component.h"
#include "launcher/sys/file.h"

namespace taskcell::mounts {
namespace {

// Empty where the link leads to something in the snapshot.
std::string WhyUnsafe(int snapshot_fd, const std::string& path) {
  constexpr uint64_t kInside = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  Result<UniqueFd> end = sys::OpenAt2(snapshot_fd, path, O_PATH, kInside);
  if (end.ok()) return {};
  switch (end.error().err) {
    case EXDEV:
      return "it is a symbolic link that leads out of what a cell may see";
    case ENOENT:
    case ENOTDIR:
      return "it is a symbolic link to nothing that a cell may see";
    case ELOOP:
      return "it is a symbolic link that leads in a circle, or through too many others";
    default:  // not by its text: the path is in it, and may be long
      return Text("it is a symbolic link that cannot be followed safely, error ", end.error().err);
  }
}

Status Remove(int snapshot_fd, const std::string& path) {
  std::vector<std::string_view> parts = Split(path, '/');
  UniqueFd dir = TRY(sys::Duplicate(snapshot_fd));
  for (std::size_t i = 0; i + 1 < parts.size(); ++i)
    dir = TRY(OpenComponent(dir.get(), std::string(parts[i]), O_RDONLY | O_DIRECTORY));
  TRY(sys::ChangeMode(dir.get(), 0700));
  TRY(sys::RemoveFile(dir.get(), std::string(parts.back())));
  return sys::ChangeMode(dir.get(), 0555);
}

}  // namespace

Result<bool> InnerLinks::Copy(int to_dir, int from_dir, const std::string& name,
                              const std::string& path) {
  Result<std::string> target = sys::ReadLink(from_dir, name);
  if (!target.ok()) {
    if (target.error().err == EINVAL || target.error().err == ENOENT) return false;
    return std::move(target).error();
  }
  TRY(sys::MakeSymbolicLink(target.value(), to_dir, name));
  paths_.push_back(path);
  return true;
}

void InnerLinks::Forget(const std::string& top) {
  std::erase_if(paths_, [&top](const std::string& path) { return path.starts_with(top + "/"); });
}

Result<std::vector<InnerLinks::Removed>> InnerLinks::RemoveUnsafe(int snapshot_fd) {
  std::vector<Removed> removed;
  for (const std::string& path : paths_) {
    std::string why = WhyUnsafe(snapshot_fd, path);
    if (!why.empty()) removed.push_back({path, std::move(why)});
  }
  for (const Removed& each : removed) {
    TRY(Remove(snapshot_fd, each.path));
    std::erase(paths_, each.path);
  }
  return removed;
}

}  // namespace taskcell::mounts

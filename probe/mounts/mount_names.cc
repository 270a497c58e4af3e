#include "probe/mounts/mount_names.h"

#include <fcntl.h>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::probe::audit {

MountNames::MountNames() {
  Result<std::string> text = sys::ReadFile(AT_FDCWD, "/proc/self/mountinfo", kMaxMountInfoBytes);
  if (!text.ok()) return;  // ignoring: then mounts have no names
  Result<std::vector<MountInfoLine>> lines = ParseMountInfo(text.value());
  if (!lines.ok()) return;  // the same
  for (MountInfoLine& line : lines.value())
    by_id_[line.id] = {std::move(line.type), std::move(line.source)};
}

std::string MountNames::Describe(uint64_t mount_id) const {
  auto found = by_id_.find(mount_id);
  if (found == by_id_.end()) return "a mount";
  const auto& [type, source] = found->second;
  return source.starts_with('/') ? Text(Printable(type), " of ", Printable(source))
                                 : Printable(type);
}

std::string MountNames::TypeOf(uint64_t mount_id) const {
  auto found = by_id_.find(mount_id);
  return found == by_id_.end() ? "" : found->second.first;
}

}  // namespace taskcell::probe::audit

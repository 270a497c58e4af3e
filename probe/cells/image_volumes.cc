#include "probe/cells/image_volumes.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

bool AtOrBelow(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

bool Coverable(const std::string& volume) {
  if (!cell::IsNormalPath(volume) || volume == "/") return false;
  return !AtOrBelow(volume, "/proc") && !AtOrBelow(volume, "/sys") && !AtOrBelow(volume, "/dev");
}

Error Refuse(std::string text) {
  return Error(Kind::kConfig, std::move(text)).Coded("container_refused");
}

}  // namespace

Result<std::vector<cell::PlannedTmpfs>> CoverVolumes(const ImageFacts& image,
                                                     const cell::CellPlan& plan) {
  if (image.volumes.size() > kMaxImageVolumes) {
    return Refuse(Text("the image declares ", image.volumes.size(), " VOLUMEs, at most ",
                       kMaxImageVolumes, " are covered; use another image"));
  }
  std::vector<cell::PlannedTmpfs> covers;
  for (std::string volume : image.volumes) {
    while (volume.size() > 1 && volume.ends_with('/')) volume.pop_back();
    if (!Coverable(volume)) {
      return Refuse(Text("the image declares VOLUME '", Printable(volume),
                         "', which can't be covered in a cell; use another image"));
    }
    auto is_there = [&](const auto& planned) { return planned.target == volume; };
    if (std::any_of(plan.mounts.begin(), plan.mounts.end(), is_there) ||
        std::any_of(plan.tmpfs.begin(), plan.tmpfs.end(), is_there) ||
        std::any_of(covers.begin(), covers.end(), is_there))
      continue;
    covers.push_back({volume, kCoverBytes, 0555, false, true});
  }
  return covers;
}

}  // namespace taskcell::probe

#include "probe/mounts/snapshot_meter.h"

#include <sys/stat.h>

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::probe::audit {

void SnapshotMeter::Count(const Met& met) {
  ++entries_;
  if (S_ISLNK(met.info.stx_mode)) has_links_ = true;
  if (S_ISREG(met.info.stx_mode)) bytes_ += met.info.stx_size;
  if (!S_ISDIR(met.info.stx_mode)) return;
  // SKILLS and wiki themselves are level 1.
  const std::string path = met.Path();
  if (std::count(path.begin(), path.end(), '/') + 1 > bounds_.depth) is_too_deep_ = true;
}

void SnapshotMeter::Count(uint64_t bytes) {
  ++entries_;
  bytes_ += bytes;
}

std::string SnapshotMeter::Excess() const {
  if (bytes_ > bounds_.bytes) return Text("more than ", bounds_.bytes, " bytes to copy");
  if (std::max<uint64_t>(entries_, looked_at_) > bounds_.entries)
    return Text("more than ", bounds_.entries, " entries");
  if (is_too_deep_) return Text("deeper than ", bounds_.depth, " levels");
  return {};
}

void SnapshotMeter::ReturnTo(const Mark& mark) {
  bytes_ = mark.bytes;
  entries_ = mark.entries;
  looked_at_ = mark.looked_at;
  is_too_deep_ = false;
}

}  // namespace taskcell::probe::audit

#include "launcher/base/text.h"
#include "launcher/cell/compare_parts.h"
#include "launcher/cell/job_settings.h"

namespace taskcell::cell {

void CompareSettings(Engine engine, const SettingsSeen& seen, Mismatches& found) {
  if (seen.file_mask != kFileMask) {
    found.Add("umask", std::to_string(kFileMask), Text(seen.file_mask, " (decimal)"));
  }
  if (seen.personality != 0) found.Add("personality", "0", std::to_string(seen.personality));
  // An engine's cell has no capability that the bits could be set with, and none to keep.
  if (engine == Engine::kNative && seen.securebits != kSecurebits) {
    found.Add("securebits", std::to_string(kSecurebits), std::to_string(seen.securebits));
  }
  if (IsRealTime(seen.policy)) {
    found.Add("scheduling.policy", "not real-time", std::to_string(seen.policy));
  }
  if (seen.io_class == kRealTimeIo) {
    found.Add("scheduling.io_class", "not real-time", std::to_string(seen.io_class));
  }
  for (std::size_t i = 0; i < seen.limits.size(); ++i) {
    const LimitCeiling& ceiling = kLimitCeilings[i];
    if (seen.limits[i] <= ceiling.highest) continue;
    found.AddLimit(Text("limits.", ceiling.name), Text("at most ", ceiling.highest),
                   std::to_string(seen.limits[i]));
  }
}

}  // namespace taskcell::cell

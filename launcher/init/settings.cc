#include "launcher/init/settings.h"

#include <algorithm>

#include "launcher/sys/job_control.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/self.h"

namespace taskcell::init {

Status ApplySettings() {
  for (const cell::LimitCeiling& ceiling : cell::kLimitCeilings) {
    uint64_t now = TRY(sys::ResourceLimit(ceiling.resource));
    TRY(sys::SetResourceLimit(ceiling.resource, std::min(now, ceiling.highest)));
  }
  TRY(sys::LeaveRealTime());
  return sys::ResetModes();
}

Result<cell::SettingsSeen> ReadSettings() {
  cell::SettingsSeen seen;
  seen.file_mask = sys::FileMask();
  seen.personality = TRY(sys::TakePersonality());
  seen.securebits = TRY(sys::Securebits());
  sys::Scheduling scheduling = TRY(sys::OwnScheduling());
  seen.policy = scheduling.policy;
  seen.io_class = scheduling.io_class;
  for (std::size_t i = 0; i < seen.limits.size(); ++i)
    seen.limits[i] = TRY(sys::ResourceLimit(cell::kLimitCeilings[i].resource));
  return seen;
}

}  // namespace taskcell::init

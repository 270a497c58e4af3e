#pragma once

#include "launcher/base/result.h"
#include "launcher/cell/job_settings.h"

namespace taskcell::init {

// Takes from the calling process what of its caller's settings a job must not have: a real-time
// policy, more than kLimitCeilings, its file mask and its personality.
Status ApplySettings();

// How the calling process has them.
Result<cell::SettingsSeen> ReadSettings();

}  // namespace taskcell::init

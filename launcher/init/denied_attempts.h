#pragma once

#include <cstdint>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::init {

// Makes the call that the row `name` of cell::DeniedCallRules() is about, in the calling process,
// and returns its outcome as DeniedCall::result has it. Every argument is such that the call would
// either succeed or do no harm if nothing refused it. A name without an attempt is an Error of kind
// kInternal. Needs the parent to be init (pid 1), which some of the calls aim at, and a
// caller that is not dumpable.
Result<int32_t> AttemptDeniedCall(std::string_view name);

}  // namespace taskcell::init

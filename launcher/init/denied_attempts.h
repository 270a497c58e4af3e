#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::init {

struct Attempted {
  int32_t result = 0;     // DeniedCall::result
  int32_t by_filter = 0;  // DeniedCall::by_filter
};

// Makes the call that the row `name` of cell::DeniedCallRules() is about, in the calling process,
// and returns its outcome. Under a filter of the plan's own
// (`filter` not empty) that one is asked first, and what it would let through or kill for is not
// made. Every argument is such that the call would
// either succeed or do no harm if nothing refused it. A name without an attempt is an Error of kind
// kInternal. Needs the parent to be init (pid 1), which some of the calls aim at, and a
// caller that is not dumpable.
Result<Attempted> AttemptDeniedCall(std::string_view name, std::span<const sock_filter> filter);

}  // namespace taskcell::init

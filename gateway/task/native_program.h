#pragma once

#include "gateway/task/admission.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Whether the AI program of an admitted task can be there in its native cell: a file that may be
// executed (WhyNoProgram). A task finds out when its cell executes it; this looks from outside. Of
// the runtime whose loop is taskcell's own nothing is asked. Error code invalid_config, in the
// words of the task's refusal.
Status CheckNativeProgram(const Admission& admission);

}  // namespace taskcell::gateway

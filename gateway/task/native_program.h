#pragma once

#include "gateway/task/admission.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Whether the AI program of an admitted task can be there in its native cell: a file that may be
// executed, in the root directory, or among what a cell sees of the host. A task finds out when its
// cell executes it; this looks from outside, at the mode and not at who may execute it. Of the
// runtime whose loop is taskcell's own nothing is asked. Error code invalid_config, in the words of
// the task's refusal.
Status CheckNativeProgram(const Admission& admission);

}  // namespace taskcell::gateway

#pragma once

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::native {

// Opens taskcell-init (O_PATH): beside this program, else in the libexec directory it was built
// for. Refuses one that is not of root or of this program's owner, or that others may write.
Result<UniqueFd> OpenInitProgram();

}  // namespace taskcell::native

#include "gateway/task/task.h"
#include "probe/cells/program.h"

namespace taskcell::gateway {

Result<Programs> FindPrograms() {
  return Programs{
      TRY(probe::FindProgram("taskcell-init")), TRY(probe::FindProgram("taskcell-launch")),
      TRY(probe::FindProgram("taskcell-loop")), TRY(probe::FindProgram("taskcell-host"))};
}

}  // namespace taskcell::gateway

#include "gateway/ledger/interrupt.h"

#include "gateway/ledger/gateway_log.h"

namespace taskcell::gateway {

Result<std::vector<std::string>> EndInterrupted(Ledger& ledger, int home_fd, int64_t now_ms) {
  std::vector<std::string> ids;
  for (const TaskRow& task : TRY(ledger.Interrupt(now_ms))) {
    // ignoring: the ledger has it, and the requester is told
    (void)AppendLog(home_fd, {"task_failed",
                              task.agent,
                              {{"code", kInterruptedCode},
                               {"unavailable", "false"},
                               {"message", kInterruptedMessage},
                               {"detail", task.id}}});
    ids.push_back(task.id);
  }
  return ids;
}

}  // namespace taskcell::gateway

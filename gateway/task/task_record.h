#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/config/task_kind.h"
#include "gateway/ledger/ledger.h"
#include "gateway/task/account_choice.h"
#include "gateway/task/answer.h"
#include "gateway/task/task.h"

namespace taskcell::gateway {

// One admitted task in the ledger of its home.
class TaskRecord {
 public:
  // Enters the task of `agent` as running, unless it waited and stands there already. Error code
  // workspace_failed: without a record nothing runs.
  static Result<TaskRecord> Begin(const Home& home, const std::string& agent,
                                  const TaskRequest& request);

  const std::string& task_id() const { return id_; }

  // Enters a cell before it is made, so that whatever is left of it can be told to be ours. Error
  // code workspace_failed.
  Status BeginCell(const RunRow& run);
  // Notes that nothing of the cell is left, and what it taught about its account. What cannot be
  // written is added to `warnings`: the task's outcome is not worth less for it.
  void EndCell(const RunRow& run, std::string_view fingerprint, const AccountLesson& lesson,
               int64_t rate_limit_cooldown_s, std::vector<std::string>& warnings);
  // Notes what a run taught about the account that paid for it.
  void Learn(std::string_view account, std::string_view fingerprint, const AccountLesson& lesson,
             int64_t rate_limit_cooldown_s, std::vector<std::string>& warnings);
  // Enters the outcome of a task that did not wait.
  void End(TaskAnswer& answer);

 private:
  TaskRecord(Ledger ledger, std::string id, bool waited)
      : ledger_(std::move(ledger)), id_(std::move(id)), waited_(waited) {}

  Ledger ledger_;
  std::string id_;
  bool waited_;
};

// What is told of a task of a gateway that ended without an answer: one that was cancelled while it
// waited, or interrupted.
TaskAnswer AnswerOfRow(const TaskRow& row);

// What a task comes to in the ledger.
TaskState StateFor(const TaskAnswer& answer);

// Now, in unix milliseconds.
int64_t UnixMilliseconds();

}  // namespace taskcell::gateway

#pragma once

#include <cstdint>
#include <optional>
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
  // Enters the task of `agent` as running, unless it waited and stands there already, in `open`
  // where that is the home's ledger. Error code workspace_failed: without a record nothing runs.
  static Result<TaskRecord> Begin(const Home& home, const std::string& agent,
                                  const TaskRequest& request, std::optional<Ledger> open);

  const std::string& task_id() const { return id_; }

  // Enters a cell before it is made, so that whatever is left of it can be told to be ours. Error
  // code workspace_failed.
  Status BeginCell(const RunRow& run);
  // Notes that nothing of the cell is left, and what it taught about its account. What cannot be
  // written is added to `warnings`: the task's outcome is not worth less for it.
  void EndCell(const RunRow& run, std::string_view fingerprint, const AccountLesson& lesson,
               int64_t rate_limit_cooldown_s, std::vector<std::string>& warnings);
  // What the account paid in `month` so far, in millionths of a cent. Error code workspace_failed.
  Result<uint64_t> PaidIn(std::string_view month, std::string_view account);
  // Enters what the run of one account cost it.
  void Pay(std::string_view account, const TaskUsage& usage, std::vector<std::string>& warnings);
  // Puts a receipt into the home's chain (receipt_chain.h).
  Status AddReceipt(const Home& home, std::string_view json);
  // Notes what a run taught about the account that paid for it.
  void Learn(std::string_view account, std::string_view fingerprint, const AccountLesson& lesson,
             int64_t rate_limit_cooldown_s, std::vector<std::string>& warnings);
  // Enters the outcome of a task that did not wait.
  void End(TaskAnswer& answer);

 private:
  TaskRecord(Ledger ledger, std::string id, bool waited)
      : ledger_(std::move(ledger)), id_(std::move(id)), waited_(waited) {}
  Status NoteLesson(std::string_view account, std::string_view fingerprint,
                    const AccountLesson& lesson, int64_t rate_limit_cooldown_s);

  Ledger ledger_;
  std::string id_;
  bool waited_;
};

// What is told of a task of a gateway that ended without an answer: one that was cancelled while it
// waited, or interrupted.
TaskAnswer AnswerOfRow(const TaskRow& row);

// The answer of a task as whoever asks later gets it, as JSON: what the ledger kept, or of a task
// that ended without one what AnswerOfRow tells. Empty while it has not ended.
Result<std::string> LaterAnswer(Ledger& ledger, const TaskRow& row);

// What a task comes to in the ledger.
TaskState StateFor(const TaskAnswer& answer);

// Now, in unix milliseconds.
int64_t UnixMilliseconds();

}  // namespace taskcell::gateway

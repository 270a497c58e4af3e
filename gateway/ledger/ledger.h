#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/ledger/account_state.h"
#include "gateway/ledger/database.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

inline constexpr char kLedgerFile[] = "taskcell.db";

// Where a task stands. Only kAccepted and kRunning are not final.
enum class TaskState : uint8_t {
  kAccepted,
  kRunning,
  kDone,
  kFailed,
  kRefused,
  kCancelled,
  kInterrupted,  // its gateway died while it ran: whether it had an effect is unknown
};
std::string_view TaskStateName(TaskState state);

// One task. Times are unix milliseconds; 0: not yet.
struct TaskRow {
  std::string id;  // 32 hex digits
  std::string agent;
  std::string kind;   // what started it: "run", "bus", "heartbeat", ...
  std::string owner;  // the process that runs it (OwnerOfThisProcess)
  TaskState state = TaskState::kAccepted;
  std::string code;     // of a final state: "ok" or why not
  std::string message;  // for the requester
  int64_t accepted_ms = 0;
  int64_t started_ms = 0;
  int64_t ended_ms = 0;
};

// One cell made for a task.
struct RunRow {
  std::string id;  // the run id in the cell's name and labels
  std::string task;
  std::string engine;
  std::string account;
  int64_t started_ms = 0;
  int64_t deadline_ms = 0;
  int64_t ended_ms = 0;
};

// The record of a home's tasks, its cells and its accounts: <home>/taskcell.db, which is not below
// <home>/sandbox, since that directory's being there means that a task ever ran. It holds no
// prompt, no reply and no secret. Several processes may have it open; an object serves one thread.
class Ledger {
 public:
  // Makes the file (0600) where there is none. kConfig when it is no ledger, or one of a newer
  // version.
  static Result<Ledger> Open(int home_fd, const std::string& home_path);
  // The same, making nothing: nullopt where there is none.
  static Result<std::optional<Ledger>> OpenExisting(int home_fd, const std::string& home_path);

  // A task that begins to run at once. kSystem when the id is there already: nothing runs twice.
  Status Start(const TaskRow& task);
  // The end of a task that is running; kViolation when it is not: no task ends twice.
  Status Finish(std::string_view id, TaskState state, std::string_view code,
                std::string_view message, int64_t ended_ms);
  // The newest first.
  Result<std::vector<TaskRow>> Tasks(int64_t limit);
  Result<std::optional<TaskRow>> Task(std::string_view id);

  // Those that are running, the oldest first.
  Result<std::vector<TaskRow>> RunningTasks();

  Status StartRun(const RunRow& run);
  Status FinishRun(std::string_view id, int64_t ended_ms);
  // All cells made for a task, in order.
  Result<std::vector<RunRow>> Runs(std::string_view task);

  // Whether a cell of that run id was ever made for this home.
  Result<bool> HasRun(std::string_view id);

  Result<std::vector<AccountState>> Accounts();
  // Changes one account's state by `change` in one transaction; a fresh state for one that was
  // never seen, or not with the secret of this fingerprint.
  Status ChangeAccount(std::string_view id, std::string_view fingerprint,
                       const std::function<void(AccountState&)>& change);

 private:
  explicit Ledger(Database database) : database_(std::move(database)) {}
  static Result<Ledger> Prepare(const std::string& home_path);
  Result<std::optional<AccountState>> Account(std::string_view id);

  Database database_;
};

}  // namespace taskcell::gateway

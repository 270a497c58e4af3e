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

// What becomes of a task whose gateway died, and what its requester is told.
inline constexpr char kInterruptedCode[] = "interrupted";
inline constexpr char kInterruptedMessage[] =
    "the gateway ended while the task ran; whether it had an effect is not known, and the record "
    "of what it asked of its provider is lost";

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
  std::string kind;   // what started it: "bus", "heartbeat", ...
  std::string owner;  // the process that runs it (OwnerOfThisProcess)
  TaskState state = TaskState::kAccepted;
  std::string code;     // of a final state: "ok" or why not
  std::string message;  // for the requester
  int64_t accepted_ms = 0;
  int64_t started_ms = 0;
  int64_t ended_ms = 0;
};

// How a task ended.
struct TaskEnd {
  TaskState state = TaskState::kFailed;  // a final one
  std::string code;
  std::string message;
  int64_t ended_ms = 0;
  std::string answer;  // for whoever asks later, as JSON; empty: nobody will
  std::string log;     // one line a step, likewise
};

// What else is asked of a task that waits.
struct TaskTerms {
  std::string team_role;  // as TaskRequest has them
  bool require_cell = false;
};

// A task that waited and is to run now.
struct ClaimedTask {
  TaskRow row;
  std::string prompt;
  TaskTerms terms;
};

// A message of one of the home's queues, once it was taken from there.
struct IntakeRow {
  std::string rail;      // which queue
  std::string message;   // its id in that queue
  std::string task;      // the task it is a part of; empty: none was made of it
  std::string envelope;  // what else its reply needs
  std::string refusal;   // what it is replied where no task was made of it
  std::string reply_id;  // the id its reply is to have
};

inline constexpr int64_t kMaxWaitingTasks = 10000;

// One cell made for a task, or for a script while that is there.
struct RunRow {
  std::string id;    // the run id in the cell's name and labels
  std::string task;  // empty: no task's (CellEntry)
  std::string engine;
  std::string account;
  int64_t started_ms = 0;
  int64_t deadline_ms = 0;
  int64_t ended_ms = 0;
};

// What one account paid in one month, as far as prices are known.
struct Spending {
  std::string account;         // its id
  int64_t microcents = 0;      // millionths of a cent
  int64_t unpriced_calls = 0;  // of models without a price
};

// Where the chain of receipts stands (receipt_chain.h). Line numbers; 0: none. Digests in hex.
struct ChainState {
  int64_t head = 0;  // the last line
  std::string head_digest;
  std::string next_digest;  // of the line behind it while that is written; empty: none is
  int64_t cut = 0;          // the last line that was removed for its age
  std::string cut_digest;
};

// The record of a home's tasks, its cells and its accounts: <home>/taskcell.db, which is not below
// <home>/sandbox, since that directory's being there means that a task ever ran. It holds no
// secret; the prompt of a task only until that ends, and the reply only of one that waited for its
// turn, since whoever asked for it may be gone. Several processes may have it open; an object
// serves one thread.
class Ledger {
 public:
  // Makes the file (0600) where there is none. kConfig when it is no ledger, or one of a newer
  // version.
  static Result<Ledger> Open(int home_fd, const std::string& home_path);
  // The same, making nothing: nullopt where there is none.
  static Result<std::optional<Ledger>> OpenExisting(int home_fd, const std::string& home_path);

  // A task that begins to run at once. kSystem when the id is there already: nothing runs twice.
  Status Start(const TaskRow& task);
  // The end of a task that is running, whose prompt goes with it; kViolation when it is not
  // running: no task ends twice.
  Status Finish(std::string_view id, const TaskEnd& end);
  // Ends as interrupted what a process that is gone was running; those tasks as they were. `look`:
  // only tells them.
  Result<std::vector<TaskRow>> Interrupt(int64_t now_ms, bool look = false);

  // Takes a task in that is to run when its turn comes, with its prompt. Error code queue_full when
  // kMaxWaitingTasks wait already.
  Status Accept(const TaskRow& task, std::string_view prompt, const TaskTerms& terms = {});
  // Takes the next task: the oldest of the agent, among those with any, that has had no turn for
  // the longest. From then on it runs, in the process `owner`, and nobody else gets it. nullopt
  // when none waits.
  Result<std::optional<ClaimedTask>> Claim(const std::string& owner, int64_t now_ms);
  // Ends a task that waits as cancelled. False: it does not wait (any more).
  Result<bool> CancelWaiting(std::string_view id, int64_t now_ms);
  Result<int64_t> Waiting();
  // What Finish kept; empty where it kept nothing.
  Result<std::string> Answer(std::string_view id);
  Result<std::string> Log(std::string_view id);

  // Takes a task in as Accept does, and enters with it the messages it was made of: all or nothing.
  Status AcceptFrom(const std::vector<IntakeRow>& messages, const TaskRow& task,
                    std::string_view prompt);
  // Enters a message that no task is made of.
  Status RefuseMessage(const IntakeRow& message);
  // Whether a message that was entered has its reply; nullopt: it was never entered.
  Result<std::optional<bool>> IsReplied(std::string_view rail, std::string_view message);
  // The messages of a queue that can have their reply by now and have none yet, in the order in
  // which they were taken.
  Result<std::vector<IntakeRow>> Unreplied(std::string_view rail, int64_t limit);
  // The message has its reply; what that needed is forgotten.
  Status MarkReplied(std::string_view rail, std::string_view message);

  // Makes all that `work` writes here one transaction: all of it or nothing, and one wait for the
  // disk.
  Status Together(const std::function<Status()>& work) {
    return database_.Transact(work).With(kLedgerFile);
  }

  // Gives back what it keeps in memory; to be called before it is not needed for long.
  void ReleaseMemory() { database_.ReleaseMemory(); }

  // The newest first.
  Result<std::vector<TaskRow>> Tasks(int64_t limit);
  Result<std::optional<TaskRow>> Task(std::string_view id);

  // Those that are running, the oldest first.
  Result<std::vector<TaskRow>> RunningTasks();

  Status StartRun(const RunRow& run);
  Status FinishRun(std::string_view id, int64_t ended_ms);
  // Nothing is left of the cell of a script.
  Status ForgetScriptRun(std::string_view id);
  // All cells made for a task, in order.
  Result<std::vector<RunRow>> Runs(std::string_view task);

  // Those whose end was not entered, in order: of cells that are there, and of those whose process
  // was killed.
  Result<std::vector<RunRow>> UnendedRuns();

  // Whether a cell of that run id was ever made for this home.
  Result<bool> HasRun(std::string_view id);

  Result<std::vector<AccountState>> Accounts();
  // Changes one account's state by `change` in one transaction; a fresh state for one that was
  // never seen, or not with the secret of this fingerprint.
  Status ChangeAccount(std::string_view id, std::string_view fingerprint,
                       const std::function<void(AccountState&)>& change);

  // Adds to what the account paid in `month` ("2026-12").
  Status AddSpending(std::string_view month, const Spending& spent);
  // Every account that paid in `month`.
  Result<std::vector<Spending>> SpendingIn(std::string_view month);

  // Removes tasks that ended before `before_ms`, the oldest first and at most `limit`, with their
  // runs, answers and messages, and messages without a task that are as old. One whose reply is
  // due stays. How many tasks it were; `look`: would be.
  Result<int64_t> RemoveEnded(int64_t before_ms, int64_t limit, bool look = false);
  // How much of its file is in use.
  Result<int64_t> UsedBytes();
  // Gives the file system back what is not, where that is a large part.
  Status Shrink();

  Result<ChainState> Chain();
  Status SetChain(const ChainState& state);

 private:
  explicit Ledger(Database database) : database_(std::move(database)) {}
  static Result<Ledger> Prepare(const std::string& home_path);
  Result<std::optional<AccountState>> Account(std::string_view id);
  Result<std::string> Kept(std::string_view column, std::string_view id);
  Status Forget(std::string_view id);
  Result<int64_t> Number(std::string_view sql);
  Status RemoveTask(const std::string& id);
  // With a transaction open.
  Status Insert(const TaskRow& task, std::string_view prompt, const TaskTerms& terms);
  Status Enter(const IntakeRow& message);

  Database database_;
};

}  // namespace taskcell::gateway

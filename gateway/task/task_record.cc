#include "gateway/task/task_record.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "gateway/ledger/month.h"
#include "gateway/ledger/owner.h"
#include "gateway/ledger/receipt_chain.h"
#include "gateway/task/answer_json.h"
#include "gateway/task/run_directory.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kWorkspaceFailed = "workspace_failed";

void Warn(const Status& status, std::vector<std::string>& warnings) {
  if (!status.ok()) warnings.push_back(status.error().text);
}

}  // namespace

TaskAnswer AnswerOfRow(const TaskRow& row) {
  TaskAnswer answer;
  answer.code = row.code;
  answer.message = row.message;
  answer.task_id = row.id;
  answer.by_gateway = true;
  return answer;
}

Result<std::string> LaterAnswer(Ledger& ledger, const TaskRow& row) {
  std::string kept = TRY(ledger.Answer(row.id));
  const bool is_final = row.state != TaskState::kAccepted && row.state != TaskState::kRunning;
  if (kept.empty() && is_final) return AnswerJson(AnswerOfRow(row));
  return kept;
}

TaskState StateFor(const TaskAnswer& answer) {
  const std::string_view word = OutcomeWord(answer.code);
  if (word == "success") return TaskState::kDone;
  if (word == "cancelled") return TaskState::kCancelled;
  return word == "refused" ? TaskState::kRefused : TaskState::kFailed;
}

int64_t UnixMilliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Result<TaskRecord> TaskRecord::Begin(const Home& home, const std::string& agent,
                                     const TaskRequest& request, std::optional<Ledger> open) {
  Result<Ledger> ledger =
      open.has_value() ? Result<Ledger>(*std::move(open)) : Ledger::Open(home.fd.get(), home.path);
  if (!ledger.ok()) return std::move(ledger).error().Coded(kWorkspaceFailed);
  if (!request.id.empty()) return TaskRecord(std::move(ledger).value(), request.id, true);
  TaskRow task;
  task.id = TRY(MakeRunId());
  task.agent = agent;
  task.kind = TaskKindName(request.kind);
  task.owner = TRY(OwnerOfThisProcess());
  task.accepted_ms = UnixMilliseconds();
  task.started_ms = task.accepted_ms;
  Status started = ledger->Start(task);
  if (!started.ok()) return std::move(started).error().Coded(kWorkspaceFailed);
  return TaskRecord(std::move(ledger).value(), std::move(task.id), false);
}

Status TaskRecord::BeginCell(const RunRow& run) {
  Status started = ledger_.StartRun(run);
  ledger_.ReleaseMemory();
  if (started.ok()) return started;
  return std::move(started).error().Coded(kWorkspaceFailed);
}

void TaskRecord::EndCell(const RunRow& run, std::string_view fingerprint,
                         const AccountLesson& lesson, int64_t rate_limit_cooldown_s,
                         std::vector<std::string>& warnings) {
  Warn(ledger_.Together([&]() -> Status {
    TRY(ledger_.FinishRun(run.id, UnixMilliseconds()));
    return NoteLesson(run.account, fingerprint, lesson, rate_limit_cooldown_s);
  }),
       warnings);
}

void TaskRecord::Learn(std::string_view account, std::string_view fingerprint,
                       const AccountLesson& lesson, int64_t rate_limit_cooldown_s,
                       std::vector<std::string>& warnings) {
  Warn(NoteLesson(account, fingerprint, lesson, rate_limit_cooldown_s), warnings);
}

Status TaskRecord::NoteLesson(std::string_view account, std::string_view fingerprint,
                              const AccountLesson& lesson, int64_t rate_limit_cooldown_s) {
  if (!lesson.outcome.has_value()) return Ok();
  constexpr int64_t kMillis = 1000;
  const int64_t now = UnixMilliseconds() / kMillis;
  return ledger_.ChangeAccount(account, fingerprint, [&](AccountState& state) {
    Advance(state, *lesson.outcome, now, lesson.retry_after_s, rate_limit_cooldown_s);
  });
}

Result<uint64_t> TaskRecord::PaidIn(std::string_view month, std::string_view account) {
  Result<std::vector<Spending>> spending = ledger_.SpendingIn(month);
  if (!spending.ok()) return std::move(spending).error().Coded(kWorkspaceFailed);
  return static_cast<uint64_t>(std::max<int64_t>(SpentBy(account, spending.value()), 0));
}

void TaskRecord::Pay(std::string_view account, const TaskUsage& usage,
                     std::vector<std::string>& warnings) {
  if (usage.model_calls == 0) return;
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMillis = 1000;
  Spending spent;
  spent.account = account;
  spent.microcents = static_cast<int64_t>(std::min(usage.microcents, kMost));
  spent.unpriced_calls = static_cast<int64_t>(std::min(usage.unpriced_calls, kMost));
  Warn(ledger_.AddSpending(MonthOf(UnixMilliseconds() / kMillis), spent), warnings);
}

Status TaskRecord::AddReceipt(const Home& home, std::string_view json) {
  return AppendReceipt(home.fd.get(), ledger_, json, WallClock::now());
}

void TaskRecord::End(TaskAnswer& answer) {
  answer.task_id = id_;
  if (waited_) return;
  TaskEnd end;
  end.state = StateFor(answer);
  end.code = answer.code;
  end.message = answer.message;
  end.ended_ms = UnixMilliseconds();
  Warn(ledger_.Finish(id_, end), answer.warnings);
}

}  // namespace taskcell::gateway

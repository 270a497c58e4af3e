#include "gateway/task/task_record.h"

#include <chrono>

#include "gateway/ledger/owner.h"
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
                                     const TaskRequest& request) {
  Result<Ledger> ledger = Ledger::Open(home.fd.get(), home.path);
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
  Warn(ledger_.FinishRun(run.id, UnixMilliseconds()), warnings);
  Learn(run.account, fingerprint, lesson, rate_limit_cooldown_s, warnings);
}

void TaskRecord::Learn(std::string_view account, std::string_view fingerprint,
                       const AccountLesson& lesson, int64_t rate_limit_cooldown_s,
                       std::vector<std::string>& warnings) {
  if (!lesson.outcome.has_value()) return;
  constexpr int64_t kMillis = 1000;
  const int64_t now = UnixMilliseconds() / kMillis;
  Warn(ledger_.ChangeAccount(account, fingerprint,
                             [&](AccountState& state) {
                               Advance(state, *lesson.outcome, now, lesson.retry_after_s,
                                       rate_limit_cooldown_s);
                             }),
       warnings);
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

// The messages that were taken from the home's queues, until they have their reply.
#include "gateway/ledger/ledger.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {

Status Ledger::Enter(const IntakeRow& message) {
  Statement insert =
      TRY(database_.Prepare("INSERT INTO intake (rail, message, task, envelope, refusal, reply_id, "
                            "replied, entered_ms) VALUES (?, ?, ?, ?, ?, ?, 0, "
                            "CAST(strftime('%s', 'now') AS INTEGER) * 1000)"));
  insert.Bind(message.rail).Bind(message.message).Bind(message.task).Bind(message.envelope);
  return insert.Bind(message.refusal).Bind(message.reply_id).Run();
}

Status Ledger::AcceptFrom(const std::vector<IntakeRow>& messages, const TaskRow& task,
                          std::string_view prompt) {
  Status accepted = database_.Transact([&]() -> Status {
    TRY(Insert(task, prompt, {}));
    for (const IntakeRow& message : messages) TRY(Enter(message));
    return Ok();
  });
  if (accepted.ok() || accepted.error().code == "queue_full") return accepted;
  return std::move(accepted).With(kLedgerFile);
}

Status Ledger::RefuseMessage(const IntakeRow& message) { return Enter(message).With(kLedgerFile); }

Result<std::optional<bool>> Ledger::IsReplied(std::string_view rail, std::string_view message) {
  Statement select =
      TRY(database_.Prepare("SELECT replied FROM intake WHERE rail = ? AND message = ?"));
  if (!TRY(select.Bind(rail).Bind(message).Step().With(kLedgerFile))) return std::optional<bool>();
  return std::optional<bool>(select.Integer(0) != 0);
}

Result<std::vector<IntakeRow>> Ledger::Unreplied(std::string_view rail, int64_t limit) {
  Statement select = TRY(database_.Prepare(
      "SELECT rail, intake.message, task, envelope, refusal, reply_id FROM intake "
      "LEFT JOIN tasks ON tasks.id = task WHERE rail = ? AND replied = 0 AND "
      "(task = '' OR tasks.state NOT IN ('accepted', 'running')) ORDER BY intake.rowid LIMIT ?"));
  select.Bind(rail).Bind(limit);
  std::vector<IntakeRow> rows;
  while (TRY(select.Step().With(kLedgerFile))) {
    int at = 0;
    IntakeRow row;
    row.rail = select.Text(at++);
    row.message = select.Text(at++);
    row.task = select.Text(at++);
    row.envelope = select.Text(at++);
    row.refusal = select.Text(at++);
    row.reply_id = select.Text(at++);
    rows.push_back(std::move(row));
  }
  return rows;
}

Status Ledger::MarkReplied(std::string_view rail, std::string_view message) {
  Statement update =
      TRY(database_.Prepare("UPDATE intake SET replied = 1, envelope = '', refusal = '' "
                            "WHERE rail = ? AND message = ?"));
  return update.Bind(rail).Bind(message).Run().With(kLedgerFile);
}

}  // namespace taskcell::gateway

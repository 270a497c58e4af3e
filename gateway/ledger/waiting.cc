// The tasks that wait for their turn, and what is kept of those that had it.
#include "gateway/ledger/ledger.h"
#include "gateway/ledger/task_columns.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {

Result<int64_t> Ledger::Waiting() {
  Statement count = TRY(database_.Prepare("SELECT COUNT(*) FROM tasks WHERE state = 'accepted'"));
  TRY(count.Step().With(kLedgerFile));
  return count.Integer(0);
}

Status Ledger::Insert(const TaskRow& task, std::string_view prompt, const TaskTerms& terms) {
  if (TRY(Waiting()) >= kMaxWaitingTasks)
    return Error(Kind::kSystem, Text(kMaxWaitingTasks,
                                     " tasks wait already; try again when some have run, or "
                                     "raise [taskcell] max_concurrent"))
        .Coded("queue_full");
  Statement insert = TRY(database_.Prepare(Text(
      "INSERT INTO tasks (", kTaskColumns, ") VALUES (?, ?, ?, '', 'accepted', '', '', ?, 0, 0)")));
  TRY(insert.Bind(task.id).Bind(task.agent).Bind(task.kind).Bind(task.accepted_ms).Run());
  Statement keep = TRY(database_.Prepare(
      "INSERT INTO prompts (task, prompt, team_role, require_cell) VALUES (?, ?, ?, ?)"));
  keep.Bind(task.id).Bind(prompt).Bind(terms.team_role);
  return keep.Bind(int64_t{terms.require_cell}).Run();
}

Status Ledger::Accept(const TaskRow& task, std::string_view prompt, const TaskTerms& terms) {
  Status accepted = database_.Transact([&]() -> Status { return Insert(task, prompt, terms); });
  if (accepted.ok() || accepted.error().code == "queue_full") return accepted;
  return std::move(accepted).With(kLedgerFile);
}

Result<std::optional<ClaimedTask>> Ledger::Claim(const std::string& owner, int64_t now_ms) {
  std::optional<ClaimedTask> claimed;
  Status done = database_.Transact([&]() -> Status {
    Statement agent = TRY(database_.Prepare(
        "SELECT agent FROM (SELECT DISTINCT agent FROM tasks WHERE state = 'accepted') "
        "LEFT JOIN turns USING (agent) ORDER BY COALESCE(turn, 0), agent LIMIT 1"));
    if (!TRY(agent.Step())) return Ok();
    const std::string next = agent.Text(0);
    TRY(agent.Run());
    Statement select = TRY(database_.Prepare(
        Text("SELECT ", kTaskColumns,
             ", prompt, team_role, require_cell FROM tasks JOIN prompts ON task = id "
             "WHERE state = 'accepted' AND agent = ? ORDER BY tasks.rowid LIMIT 1")));
    if (!TRY(select.Bind(next).Step()))
      return Error(Kind::kConfig, Text("a task of agent ", Printable(next), " has no prompt"));
    int column = kTaskColumnCount;
    ClaimedTask task;
    task.row = TRY(ReadTask(select));
    task.prompt = select.Text(column++);
    task.terms.team_role = select.Text(column++);
    task.terms.require_cell = select.Integer(column) != 0;
    TRY(select.Run());
    Statement update = TRY(database_.Prepare(
        "UPDATE tasks SET state = 'running', owner = ?, started_ms = ? WHERE id = ?"));
    TRY(update.Bind(owner).Bind(now_ms).Bind(task.row.id).Run());
    Statement turn =
        TRY(database_.Prepare("INSERT OR REPLACE INTO turns (agent, turn) SELECT ?, "
                              "COALESCE(MAX(turn), 0) + 1 FROM turns"));
    TRY(turn.Bind(next).Run());
    task.row.state = TaskState::kRunning;
    task.row.owner = owner;
    task.row.started_ms = now_ms;
    claimed = std::move(task);
    return Ok();
  });
  if (!done.ok()) return std::move(done).error().With(kLedgerFile);
  return claimed;
}

Result<bool> Ledger::CancelWaiting(std::string_view id, int64_t now_ms) {
  bool cancelled = false;
  Status done = database_.Transact([&]() -> Status {
    Statement update = TRY(database_.Prepare(
        "UPDATE tasks SET state = 'cancelled', code = 'stopped', message = ?, ended_ms = ? "
        "WHERE id = ? AND state = 'accepted' RETURNING id"));
    update.Bind("the task was cancelled before it began").Bind(now_ms).Bind(id);
    cancelled = TRY(update.Step());
    TRY(update.Run());
    if (!cancelled) return Ok();
    return Forget(id);
  });
  if (!done.ok()) return std::move(done).error().With(kLedgerFile);
  return cancelled;
}

Status Ledger::Forget(std::string_view id) {
  Statement remove = TRY(database_.Prepare("DELETE FROM prompts WHERE task = ?"));
  return remove.Bind(id).Run();
}

Result<std::string> Ledger::Kept(std::string_view column, std::string_view id) {
  Statement select =
      TRY(database_.Prepare(Text("SELECT ", column, " FROM answers WHERE task = ?")));
  if (!TRY(select.Bind(id).Step().With(kLedgerFile))) return std::string();
  return select.Text(0);
}

Result<std::string> Ledger::Answer(std::string_view id) { return Kept("answer", id); }
Result<std::string> Ledger::Log(std::string_view id) { return Kept("log", id); }

}  // namespace taskcell::gateway

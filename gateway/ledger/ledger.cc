#include "gateway/ledger/ledger.h"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "gateway/ledger/owner.h"
#include "gateway/ledger/task_columns.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr int64_t kVersion = 4;

// One statement each, since they are prepared one by one. An older ledger gets the rest.
constexpr std::array<std::string_view, 4> kVersion1 = {
    "CREATE TABLE tasks (id TEXT PRIMARY KEY, agent TEXT NOT NULL, kind TEXT NOT NULL, "
    "owner TEXT NOT NULL, state TEXT NOT NULL, code TEXT NOT NULL, message TEXT NOT NULL, "
    "accepted_ms INTEGER NOT NULL, "
    "started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL) STRICT",
    "CREATE TABLE runs (id TEXT PRIMARY KEY, task TEXT NOT NULL REFERENCES tasks(id), "
    "engine TEXT NOT NULL, account TEXT NOT NULL, started_ms INTEGER NOT NULL, "
    "deadline_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL) STRICT",
    "CREATE TABLE accounts (id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, cooling_until INTEGER "
    "NOT NULL, "
    "cooling_because TEXT NOT NULL, errors INTEGER NOT NULL, auth_failures INTEGER NOT NULL, "
    "last_used INTEGER NOT NULL) STRICT",
    "PRAGMA user_version = 1",
};
constexpr std::array<std::string_view, 5> kVersion2 = {
    "CREATE TABLE prompts (task TEXT PRIMARY KEY REFERENCES tasks(id), prompt TEXT NOT NULL) "
    "STRICT",
    "CREATE TABLE answers (task TEXT PRIMARY KEY REFERENCES tasks(id), answer TEXT NOT NULL, "
    "log TEXT NOT NULL) STRICT",
    "CREATE TABLE turns (agent TEXT PRIMARY KEY, turn INTEGER NOT NULL) STRICT",
    "CREATE INDEX waiting ON tasks(agent) WHERE state = 'accepted'",
    "PRAGMA user_version = 2",
};
constexpr std::array<std::string_view, 5> kVersion3 = {
    "ALTER TABLE prompts ADD COLUMN team_role TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE prompts ADD COLUMN require_cell INTEGER NOT NULL DEFAULT 0",
    "CREATE TABLE intake (rail TEXT NOT NULL, message TEXT NOT NULL, task TEXT NOT NULL, "
    "envelope TEXT NOT NULL, refusal TEXT NOT NULL, reply_id TEXT NOT NULL, replied INTEGER NOT "
    "NULL, PRIMARY KEY (rail, message)) STRICT",
    "CREATE INDEX unreplied ON intake(rail) WHERE replied = 0",
    "PRAGMA user_version = 3",
};

constexpr std::array<std::string_view, 6> kVersion4 = {
    "CREATE TABLE spending (account TEXT NOT NULL, month TEXT NOT NULL, microcents INTEGER NOT "
    "NULL, unpriced INTEGER NOT NULL, PRIMARY KEY (account, month)) STRICT",
    "CREATE TABLE chain (id INTEGER PRIMARY KEY CHECK (id = 1), head INTEGER NOT NULL, head_digest "
    "TEXT NOT NULL, next_digest TEXT NOT NULL, cut INTEGER NOT NULL, cut_digest TEXT NOT NULL) "
    "STRICT",
    // 0 where it is not known: such a message is taken for an old one.
    "ALTER TABLE intake ADD COLUMN entered_ms INTEGER NOT NULL DEFAULT 0",
    // For what is removed with a task.
    "CREATE INDEX IF NOT EXISTS runs_of ON runs(task)",
    "CREATE INDEX IF NOT EXISTS intake_of ON intake(task)",
    "PRAGMA user_version = 4",
};

constexpr std::array<std::pair<TaskState, std::string_view>, 7> kStates = {{
    {TaskState::kAccepted, "accepted"},
    {TaskState::kRunning, "running"},
    {TaskState::kDone, "done"},
    {TaskState::kFailed, "failed"},
    {TaskState::kRefused, "refused"},
    {TaskState::kCancelled, "cancelled"},
    {TaskState::kInterrupted, "interrupted"},
}};

Result<TaskState> ParseState(std::string_view name) {
  for (const auto& [state, known] : kStates)
    if (known == name) return state;
  return Error(Kind::kConfig, Text("unknown state '", Printable(name), "'"));
}

AccountState ReadAccount(const Statement& row) {
  AccountState state;
  int at = 0;
  state.id = row.Text(at++);
  state.fingerprint = row.Text(at++);
  state.cooling_until = row.Integer(at++);
  state.cooling_because = row.Text(at++);
  state.errors = row.Integer(at++);
  state.auth_failures = row.Integer(at++);
  state.last_used = row.Integer(at++);
  return state;
}

constexpr std::string_view kSelectAccounts =
    "SELECT id, fingerprint, cooling_until, cooling_because, errors, auth_failures, last_used FROM "
    "accounts";

constexpr std::string_view kSelectRuns =
    "SELECT id, task, engine, account, started_ms, deadline_ms, ended_ms FROM runs";

Result<std::vector<RunRow>> ReadRuns(Statement& select) {
  std::vector<RunRow> runs;
  while (TRY(select.Step().With(kLedgerFile))) {
    RunRow run;
    int at = 0;
    run.id = select.Text(at++);
    run.task = select.Text(at++);
    run.engine = select.Text(at++);
    run.account = select.Text(at++);
    run.started_ms = select.Integer(at++);
    run.deadline_ms = select.Integer(at++);
    run.ended_ms = select.Integer(at++);
    runs.push_back(std::move(run));
  }
  return runs;
}

Result<int64_t> Version(Database& database) {
  Statement version = TRY(database.Prepare("PRAGMA user_version"));
  TRY(version.Step());
  return version.Integer(0);
}

Status MakeTables(Database& database) {
  // Two processes may be here at once: the second finds the version of the first.
  return database.Transact([&database]() -> Status {
    if (TRY(Version(database)) == 0)
      for (std::string_view statement : kVersion1) TRY(database.Execute(statement));
    if (TRY(Version(database)) == 1)
      for (std::string_view statement : kVersion2) TRY(database.Execute(statement));
    if (TRY(Version(database)) == 2)
      for (std::string_view statement : kVersion3) TRY(database.Execute(statement));
    if (TRY(Version(database)) == 3)
      for (std::string_view statement : kVersion4) TRY(database.Execute(statement));
    return Ok();
  });
}

}  // namespace

Result<TaskRow> ReadTask(const Statement& row) {
  TaskRow task;
  int at = 0;
  task.id = row.Text(at++);
  task.agent = row.Text(at++);
  task.kind = row.Text(at++);
  task.owner = row.Text(at++);
  task.state = TRY(ParseState(row.Text(at++)));
  task.code = row.Text(at++);
  task.message = row.Text(at++);
  task.accepted_ms = row.Integer(at++);
  task.started_ms = row.Integer(at++);
  task.ended_ms = row.Integer(at++);
  return task;
}

std::string_view TaskStateName(TaskState state) {
  for (const auto& [known, name] : kStates)
    if (known == state) return name;
  return "";
}

Result<Ledger> Ledger::Prepare(const std::string& home_path) {
  Database database = TRY(Database::Open(Text(home_path, "/", kLedgerFile)));
  if (TRY(Version(database)) < kVersion) TRY(MakeTables(database));
  const int64_t version = TRY(Version(database));
  if (version != kVersion)
    return Error(Kind::kConfig, Text("it has version ", version, ", and this taskcell knows ",
                                     kVersion, "; use the taskcell that made it"));
  return Ledger(std::move(database));
}

Result<Ledger> Ledger::Open(int home_fd, const std::string& home_path) {
  // SQLite gives its other files the mode of this one. CRITICAL: it is never opened here but as a
  // path: to close a descriptor of it drops the locks (fcntl(2)) of every connection this process
  // has, and the next process that looks removes the log beneath them.
  Status made = sys::MakeFile(home_fd, kLedgerFile, 0600);
  if (!made.ok() && made.error().err != EEXIST) return std::move(made).error().With(kLedgerFile);
  UniqueFd file = TRY(sys::OpenAt2(home_fd, kLedgerFile, O_PATH | O_NOFOLLOW, sys::kResolveBeneath)
                          .With(kLedgerFile));
  if (!S_ISREG(TRY(sys::Stat(file.get())).st_mode))
    return Error(Kind::kConfig, Text(kLedgerFile, " is not a regular file"));
  return Prepare(home_path).With(kLedgerFile);
}

Result<std::optional<Ledger>> Ledger::OpenExisting(int home_fd, const std::string& home_path) {
  Result<UniqueFd> file =
      sys::OpenAt2(home_fd, kLedgerFile, O_PATH | O_NOFOLLOW, sys::kResolveBeneath);
  if (!file.ok() && file.error().err == ENOENT) return std::optional<Ledger>();
  return std::optional<Ledger>(TRY(Open(home_fd, home_path)));
}

Status Ledger::Start(const TaskRow& task) {
  Statement insert = TRY(database_.Prepare(
      Text("INSERT INTO tasks (", kTaskColumns, ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")));
  insert.Bind(task.id).Bind(task.agent).Bind(task.kind).Bind(task.owner);
  insert.Bind(TaskStateName(TaskState::kRunning));
  insert.Bind("").Bind("").Bind(task.accepted_ms).Bind(task.started_ms).Bind(int64_t{0});
  return insert.Run().With(kLedgerFile);
}

Status Ledger::Finish(std::string_view id, const TaskEnd& end) {
  return database_
      .Transact([&]() -> Status {
        Statement update =
            TRY(database_.Prepare("UPDATE tasks SET state = ?, code = ?, message = ?, ended_ms = ? "
                                  "WHERE id = ? AND state = 'running' RETURNING id"));
        update.Bind(TaskStateName(end.state)).Bind(end.code).Bind(end.message);
        const bool changed = TRY(update.Bind(end.ended_ms).Bind(id).Step());
        TRY(update.Run());
        if (!changed)
          return Error(Kind::kViolation, Text("task ", Printable(id), " is not running"));
        TRY(Forget(id));
        if (end.answer.empty() && end.log.empty()) return Ok();
        Statement keep =
            TRY(database_.Prepare("INSERT INTO answers (task, answer, log) VALUES (?, ?, ?)"));
        return keep.Bind(id).Bind(end.answer).Bind(end.log).Run();
      })
      .With(kLedgerFile);
}

Result<std::vector<TaskRow>> Ledger::Interrupt(int64_t now_ms, bool look) {
  std::vector<TaskRow> ended;
  for (TaskRow& task : TRY(RunningTasks())) {
    if (IsOwnerAlive(task.owner)) continue;
    TaskEnd end;
    end.state = TaskState::kInterrupted;
    end.code = kInterruptedCode;
    end.message = kInterruptedMessage;
    end.ended_ms = now_ms;
    if (!look) TRY(Finish(task.id, end));
    ended.push_back(std::move(task));
  }
  return ended;
}

Result<std::vector<TaskRow>> Ledger::Tasks(int64_t limit) {
  Statement select = TRY(database_.Prepare(Text("SELECT ", kTaskColumns,
                                                " FROM tasks ORDER BY accepted_ms DESC, id "
                                                "LIMIT ?")));
  select.Bind(limit);
  std::vector<TaskRow> tasks;
  while (TRY(select.Step().With(kLedgerFile)))
    tasks.push_back(TRY(ReadTask(select).With(kLedgerFile)));
  return tasks;
}

Result<std::vector<TaskRow>> Ledger::RunningTasks() {
  Statement select = TRY(database_.Prepare(Text(
      "SELECT ", kTaskColumns, " FROM tasks WHERE state = 'running' ORDER BY accepted_ms, id")));
  std::vector<TaskRow> tasks;
  while (TRY(select.Step().With(kLedgerFile)))
    tasks.push_back(TRY(ReadTask(select).With(kLedgerFile)));
  return tasks;
}

Result<std::optional<TaskRow>> Ledger::Task(std::string_view id) {
  Statement select =
      TRY(database_.Prepare(Text("SELECT ", kTaskColumns, " FROM tasks WHERE id = ?")));
  select.Bind(id);
  if (!TRY(select.Step().With(kLedgerFile))) return std::optional<TaskRow>();
  return std::optional<TaskRow>(TRY(ReadTask(select).With(kLedgerFile)));
}

Status Ledger::StartRun(const RunRow& run) {
  Statement insert =
      TRY(database_.Prepare("INSERT INTO runs (id, task, engine, account, started_ms, deadline_ms, "
                            "ended_ms) VALUES (?, ?, ?, ?, ?, ?, 0)"));
  insert.Bind(run.id).Bind(run.task).Bind(run.engine).Bind(run.account);
  insert.Bind(run.started_ms).Bind(run.deadline_ms);
  return insert.Run().With(kLedgerFile);
}

Status Ledger::FinishRun(std::string_view id, int64_t ended_ms) {
  Statement update = TRY(database_.Prepare("UPDATE runs SET ended_ms = ? WHERE id = ?"));
  return update.Bind(ended_ms).Bind(id).Run().With(kLedgerFile);
}

Status Ledger::ForgetScriptRun(std::string_view id) {
  Statement remove = TRY(database_.Prepare("DELETE FROM runs WHERE id = ? AND task = ''"));
  return remove.Bind(id).Run().With(kLedgerFile);
}

Result<std::vector<RunRow>> Ledger::Runs(std::string_view task) {
  Statement select =
      TRY(database_.Prepare(Text(kSelectRuns, " WHERE task = ? ORDER BY started_ms, rowid")));
  return ReadRuns(select.Bind(task));
}

Result<std::vector<RunRow>> Ledger::UnendedRuns() {
  Statement select =
      TRY(database_.Prepare(Text(kSelectRuns, " WHERE ended_ms = 0 ORDER BY started_ms, rowid")));
  return ReadRuns(select);
}

Result<bool> Ledger::HasRun(std::string_view id) {
  Statement select = TRY(database_.Prepare("SELECT 1 FROM runs WHERE id = ?"));
  select.Bind(id);
  return select.Step().With(kLedgerFile);
}

Result<std::vector<AccountState>> Ledger::Accounts() {
  Statement select = TRY(database_.Prepare(Text(kSelectAccounts, " ORDER BY id")));
  std::vector<AccountState> states;
  while (TRY(select.Step().With(kLedgerFile))) states.push_back(ReadAccount(select));
  return states;
}

Result<std::optional<AccountState>> Ledger::Account(std::string_view id) {
  Statement select = TRY(database_.Prepare(Text(kSelectAccounts, " WHERE id = ?")));
  select.Bind(id);
  if (!TRY(select.Step())) return std::optional<AccountState>();
  return std::optional<AccountState>(ReadAccount(select));
}

Status Ledger::ChangeAccount(std::string_view id, std::string_view fingerprint,
                             const std::function<void(AccountState&)>& change) {
  return database_
      .Transact([&]() -> Status {
        AccountState state = TRY(Account(id)).value_or(AccountState());
        if (state.fingerprint != fingerprint) state = AccountState();
        change(state);
        Statement replace = TRY(database_.Prepare(
            "INSERT OR REPLACE INTO accounts (id, fingerprint, cooling_until, cooling_because, "
            "errors, auth_failures, last_used) VALUES (?, ?, ?, ?, ?, ?, ?)"));
        replace.Bind(id).Bind(fingerprint).Bind(state.cooling_until).Bind(state.cooling_because);
        return replace.Bind(state.errors).Bind(state.auth_failures).Bind(state.last_used).Run();
      })
      .With(kLedgerFile);
}

}  // namespace taskcell::gateway

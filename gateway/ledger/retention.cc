// What of the ledger goes for its age.
#include <algorithm>

#include "gateway/ledger/ledger.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kEnded =
    "FROM tasks WHERE state NOT IN ('accepted', 'running') AND ended_ms < ? "
    "AND id NOT IN (SELECT task FROM intake WHERE replied = 0)";

}  // namespace

Result<int64_t> Ledger::Number(std::string_view sql) {
  Statement select = TRY(database_.Prepare(sql));
  TRY(select.Step().With(kLedgerFile));
  return select.Integer(0);
}

Status Ledger::RemoveTask(const std::string& id) {
  for (std::string_view sql :
       {"DELETE FROM prompts WHERE task = ?", "DELETE FROM answers WHERE task = ?",
        "DELETE FROM runs WHERE task = ?", "DELETE FROM intake WHERE task = ?",
        "DELETE FROM tasks WHERE id = ?"}) {
    Statement remove = TRY(database_.Prepare(sql));
    TRY(remove.Bind(id).Run());
  }
  return Ok();
}

Result<int64_t> Ledger::RemoveEnded(int64_t before_ms, int64_t limit, bool look) {
  int64_t count = 0;
  Status done = database_.Transact([&]() -> Status {
    Statement select =
        TRY(database_.Prepare(Text("SELECT id ", kEnded, " ORDER BY ended_ms, id LIMIT ?")));
    select.Bind(before_ms).Bind(limit);
    std::vector<std::string> ids;
    while (TRY(select.Step())) ids.push_back(select.Text(0));
    count = static_cast<int64_t>(ids.size());
    if (look) return Ok();
    for (const std::string& id : ids) TRY(RemoveTask(id));
    Statement messages = TRY(
        database_.Prepare("DELETE FROM intake WHERE task = '' AND replied = 1 AND entered_ms < ?"));
    return messages.Bind(before_ms).Run();
  });
  if (!done.ok()) return std::move(done).error().With(kLedgerFile);
  return count;
}

Result<int64_t> Ledger::UsedBytes() {
  const int64_t pages = TRY(Number("PRAGMA page_count")) - TRY(Number("PRAGMA freelist_count"));
  return pages * TRY(Number("PRAGMA page_size"));
}

Status Ledger::Shrink() {
  constexpr int64_t kPart = 4;
  if (TRY(Number("PRAGMA freelist_count")) * kPart < TRY(Number("PRAGMA page_count"))) return Ok();
  return database_.Execute("VACUUM").With(kLedgerFile);
}

}  // namespace taskcell::gateway

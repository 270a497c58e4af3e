#include "gateway/intake/message_queue.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr std::array<std::string_view, 13> kColumns = {
    "id",           "sender",       "target",          "payload",  "status",
    "error",        "response",     "created_at",      "acked_at", "completed_at",
    "origin_agent", "sender_agent", "delegation_depth"};

std::string Now() { return Rfc3339(WallClock::now()); }

// Why no task is made of a row, as far as ObjectionTo does not tell.
std::string TroubleOf(bool is_sound, std::string_view lane) {
  if (!is_sound)
    return "the row is not as the platform writes it: target and payload must be texts, "
           "delegation_depth a number from 0 to 255";
  if (lane == "explore")
    return "explore_lane_unsupported: a read-only round cannot be run here, since the sandbox "
           "gives the AI a shell";
  return "";
}

}  // namespace

Result<std::optional<MessageQueue>> MessageQueue::Open(const Home& home) {
  Result<struct stat> info = sys::StatAt(home.fd.get(), kQueueFile);
  if (!info.ok() && info.error().err == ENOENT) return std::optional<MessageQueue>();
  if (!info.ok()) return std::move(info).error();
  if (!S_ISREG(info->st_mode))
    return Error(Kind::kConfig, Text(kQueueFile, " is not a regular file; move it away"));
  MessageQueue queue(TRY(Database::OpenForeign(Text(home.path, "/", kQueueFile)).With(kQueueFile)));
  TRY(queue.CheckShape().With(kQueueFile));
  return std::optional<MessageQueue>(std::move(queue));
}

Result<std::set<std::string, std::less<>>> MessageQueue::ColumnsOf(std::string_view table) {
  Statement select = TRY(database_.Prepare(
      "SELECT name FROM pragma_table_info(?) WHERE (SELECT type FROM sqlite_schema WHERE name = ?) "
      "= 'table'"));
  select.Bind(table).Bind(table);
  std::set<std::string, std::less<>> columns;
  while (TRY(select.Step())) columns.insert(select.Text(0));
  return columns;
}

Status MessageQueue::CheckShape() {
  const std::set<std::string, std::less<>> columns = TRY(ColumnsOf("message_queue"));
  for (std::string_view column : kColumns) {
    if (columns.contains(column)) continue;
    return Error(Kind::kConfig,
                 Text(columns.empty() ? std::string("it has no table message_queue")
                                      : Text("its table message_queue has no column ", column),
                      ": its shape is unknown, and nothing is taken from it; move it away, or end "
                      "the program that made it so"));
  }
  has_lane_ = columns.contains("lane");
  has_session_ = columns.contains("turn_id") && columns.contains("session_id");
  has_callbacks_ = TRY(ColumnsOf("delegation_callbacks")).contains("message_id");
  return Ok();
}

// Written to only where there is one: a look must not keep others from writing.
Status MessageQueue::FailUnreadable() {
  const std::string where =
      Text("status = 'pending' AND (typeof(id) <> 'text' OR length(id) NOT BETWEEN 1 AND ",
           kMaxMessageIdBytes, ")");
  {
    Statement select =
        TRY(database_.Prepare(Text("SELECT 1 FROM message_queue WHERE ", where, " LIMIT 1")));
    if (!TRY(select.Step())) return Ok();
  }
  Statement update = TRY(database_.Prepare(
      Text("UPDATE message_queue SET status = 'failed', error = 'its id is no text of 1 to ",
           kMaxMessageIdBytes, " bytes', completed_at = ? WHERE ", where)));
  return update.Bind(Now()).Run();
}

Result<std::vector<QueuedMessage>> MessageQueue::Pending(int64_t limit) {
  TRY(FailUnreadable().With(kQueueFile));
  Statement select = TRY(database_.Prepare(Text(
      "SELECT id, sender, target, origin_agent, sender_agent, ",
      has_session_ ? "turn_id, session_id, " : "'', '', ", has_lane_ ? "lane, " : "'', ",
      "length(CAST(payload AS BLOB)), "
      "typeof(target) = 'text' AND typeof(payload) = 'text' AND typeof(delegation_depth) = "
      "'integer' AND delegation_depth BETWEEN 0 AND 255, delegation_depth, ",
      "CASE WHEN length(CAST(payload AS BLOB)) <= ", kMaxPayloadBytes,
      " THEN payload ELSE '' END FROM message_queue WHERE status = 'pending' AND sender IS NOT "
      "'workflow' ORDER BY created_at, rowid LIMIT ?")));
  select.Bind(limit);
  std::vector<QueuedMessage> rows;
  while (TRY(select.Step().With(kQueueFile))) {
    QueuedMessage row;
    int at = 0;
    row.message.message_id = select.Text(at++);
    row.message.sender = select.Text(at++);
    row.message.agent_id = select.Text(at++);
    row.message.origin_agent = select.Text(at++);
    row.message.sender_agent = select.Text(at++);
    row.message.turn_id = select.Text(at++);
    row.message.session_id = select.Text(at++);
    const std::string lane = select.Text(at++);
    const auto bytes = static_cast<uint64_t>(select.Integer(at++));
    const bool is_sound = select.Integer(at++) != 0;
    row.message.delegation_depth = static_cast<uint64_t>(select.Integer(at++));
    row.message.hop_depth = row.message.delegation_depth;
    row.message.payload = select.Text(at);
    row.trouble = TroubleOf(is_sound, lane);
    if (row.trouble.empty() && bytes > kMaxPayloadBytes) row.trouble = TooLarge(bytes);
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<int64_t> MessageQueue::Workflows() {
  Statement select = TRY(database_.Prepare(
      "SELECT count(*) FROM message_queue WHERE status = 'pending' AND sender = 'workflow'"));
  if (!TRY(select.Step().With(kQueueFile))) return 0;
  return select.Integer(0);
}

Status MessageQueue::Take(std::string_view id) {
  Statement update =
      TRY(database_.Prepare("UPDATE message_queue SET status = 'processing', acked_at = ? WHERE id "
                            "= ? AND status = 'pending'"));
  return update.Bind(Now()).Bind(id).Run().With(kQueueFile);
}

Status MessageQueue::End(std::string_view state, std::string_view column, std::string_view text,
                         std::string_view id) {
  Statement update =
      TRY(database_.Prepare(Text("UPDATE message_queue SET status = ?, ", column,
                                 " = ?, completed_at = ? WHERE id = ? AND status NOT IN ('done', "
                                 "'failed')")));
  return update.Bind(state).Bind(text).Bind(Now()).Bind(id).Run().With(kQueueFile);
}

Status MessageQueue::Complete(std::string_view id, std::string_view reply) {
  return End("done", "response", reply, id);
}

Status MessageQueue::Fail(std::string_view id, std::string_view error) {
  return End("failed", "error", error, id);
}

Result<bool> MessageQueue::HasCallback(std::string_view id) {
  if (!has_callbacks_) return false;
  Statement select =
      TRY(database_.Prepare("SELECT 1 FROM delegation_callbacks WHERE message_id = ?"));
  return select.Bind(id).Step().With(kQueueFile);
}

}  // namespace taskcell::gateway

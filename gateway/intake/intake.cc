#include "gateway/intake/intake.h"

#include <fcntl.h>

#include <cerrno>

#include "gateway/config/agent_config.h"
#include "gateway/ledger/gateway_log.h"
#include "gateway/ledger/lock_file.h"
#include "gateway/task/answer_json.h"
#include "gateway/task/run_directory.h"
#include "gateway/task/task_record.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::gateway {
namespace {

constexpr char kLockName[] = "gateway.lock";
constexpr char kHolderFile[] = "locks/gateway.lock.holder";
constexpr std::size_t kMaxHolderBytes = 256;
constexpr char kBusRail[] = "bus";
constexpr char kQueueRail[] = "queue";
constexpr int64_t kMaxRowsAtOnce = 100;

// 32 hex digits as the platform writes an id.
Result<std::string> MakeReplyId() {
  std::string id = TRY(MakeRunId());
  for (std::size_t dash : {8U, 13U, 18U, 23U}) id.insert(dash, "-");
  return id;
}

// For people, and for the platform's doctor.
Status WriteHolder(const Home& home) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  UniqueFd file = TRY(sys::OpenAt2(home.fd.get(), kHolderFile, kFlags, sys::kResolveBeneath, 0600));
  TRY(sys::Truncate(file.get(), 0));
  return sys::WriteAll(file.get(),
                       Text("pid=", sys::OwnPid(), " since=", Rfc3339(WallClock::now()), "\n"));
}

TaskAnswer RefusalOf(std::string_view why) {
  TaskAnswer answer;
  answer.code = "message_refused";
  answer.message = OneLine(why, kMaxMessageBytes);
  answer.for_host = true;  // the sandbox had no part in it
  return answer;
}

bool IsThere(const Home& home, const char* name) {
  Result<struct stat> info = sys::StatAt(home.fd.get(), name);
  return info.ok() || info.error().err != ENOENT;
}

}  // namespace

Result<std::unique_ptr<Intake>> Intake::Make(const Home& home) {
  Ledger ledger = TRY(Ledger::Open(home.fd.get(), home.path));
  return std::unique_ptr<Intake>(new Intake(home, std::move(ledger)));
}

std::vector<std::string> Intake::Look(bool take) {
  std::vector<std::string> troubles;
  auto note = [&troubles](const Status& done) {
    if (!done.ok()) troubles.push_back(done.error().text);
  };
  Result<bool> ours = IsOurs();
  if (!ours.ok()) return {ours.error().text};
  if (!ours.value()) return troubles;
  note(RescueLate());
  if (take) {
    note(TakeFromBus());
    note(TakeFromQueue());
  }
  note(ReplyOnBus());
  note(ReplyInQueue());
  return troubles;
}

// False: there is no queue, and no reply for one.
Result<bool> Intake::IsOurs() {
  if (lock_.valid()) return true;
  if (!IsThere(home_, kBusFile) && !IsThere(home_, kQueueFile) &&
      TRY(ledger_.Unreplied(kBusRail, 1)).empty() && TRY(ledger_.Unreplied(kQueueRail, 1)).empty())
    return false;
  TRY(Own());
  return true;
}

Status Intake::Own() {
  Result<UniqueFd> lock = TakeHomeLock(home_.fd.get(), kLockName);
  if (!lock.ok() && lock.error().err == EWOULDBLOCK) {
    Result<std::string> holder = sys::ReadFile(home_.fd.get(), kHolderFile, kMaxHolderBytes);
    return Error(Kind::kConfig,
                 Text("another gateway serves the queues of this home (",
                      holder.ok() ? Printable(Trim(holder.value())) : std::string("unknown"),
                      "): nothing is taken from them until it ends"))
        .Coded("gateway_running");
  }
  lock_ = TRY(std::move(lock));
  (void)WriteHolder(home_);  // ignoring: the lock is what counts
  return Ok();
}

// A program that had the replaced file open without the lock may have written to it still.
Status Intake::RescueLate() {
  const std::string late = TRY(ReadLate(replaced_));
  if (late.empty()) return Ok();
  BusFile bus = TRY(BusFile::Open(home_));
  TRY(bus.Append(late));
  replaced_.size += static_cast<int64_t>(late.size());
  return Ok();
}

Status Intake::TakeFromBus() {
  if (TRY(BusFile::Look(home_)) == seen_) return Ok();
  constexpr int kTries = 3;
  for (int turn = 0; turn < kTries; ++turn) {
    BusFile bus = TRY(BusFile::Open(home_));
    std::vector<std::string> kept;
    Status entered = Enter(bus.lines(), kept);
    const bool is_less = kept.size() < bus.lines().size();
    if (is_less && !TRY(bus.Replace(kept))) continue;
    if (is_less) replaced_ = bus.TakeReplaced();
    if (entered.ok()) seen_ = bus.stamp();
    return entered;
  }
  return Ok();  // what is in the ledger goes from the file at the next look
}

// Enters the messages among the lines; the others, and those that could not be, are `kept`.
Status Intake::Enter(const std::vector<std::string>& lines, std::vector<std::string>& kept) {
  std::vector<BusMessage> messages;
  std::vector<std::size_t> line_of;
  std::vector<bool> is_gone(lines.size(), false);
  std::set<std::string> here;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    BusLine line = ParseBusLine(lines[at]);
    if (line.kind == BusLineKind::kBroken) WarnOfLine(lines[at], line.trouble);
    if (line.kind != BusLineKind::kMessage) continue;
    const BusMessage& message = line.message;
    const bool is_first = here.insert(message.message_id).second;
    is_gone[at] = !is_first || TRY(ledger_.IsReplied(kBusRail, message.message_id)).has_value();
    if (is_gone[at]) {
      Warn("message_repeated", message, kBusRail, "its id was there before: it is not run again");
      continue;
    }
    const std::optional<std::string> objection = ObjectionTo(message);
    if (objection.has_value()) {
      TRY(Refuse(kBusRail, message, *objection));
      is_gone[at] = true;
      continue;
    }
    messages.push_back(std::move(line.message));
    line_of.push_back(at);
  }
  Status entered = Ok();
  for (const std::vector<std::size_t>& group : Coalesce(messages)) {
    std::vector<const BusMessage*> parts;
    parts.reserve(group.size());
    for (std::size_t at : group) parts.push_back(&messages[at]);
    entered = Accept(kBusRail, parts);
    if (!entered.ok()) break;
    for (std::size_t at : group) is_gone[line_of[at]] = true;
  }
  for (std::size_t at = 0; at < lines.size(); ++at)
    if (!is_gone[at]) kept.push_back(lines[at]);
  return entered;
}

Status Intake::TakeFromQueue() {
  std::optional<MessageQueue> queue = TRY(MessageQueue::Open(home_));
  if (!queue.has_value()) return Ok();
  for (const QueuedMessage& row : TRY(queue->Pending(kMaxRowsAtOnce))) TRY(TakeRow(*queue, row));
  return WarnOfWorkflows(*queue);
}

Status Intake::TakeRow(MessageQueue& queue, const QueuedMessage& row) {
  const BusMessage& message = row.message;
  const std::optional<bool> is_replied = TRY(ledger_.IsReplied(kQueueRail, message.message_id));
  if (is_replied.value_or(false)) {
    Warn("message_repeated", message, kQueueRail, "its id was there before: it is not run again");
    return queue.Fail(message.message_id,
                      "a message of this id was answered before, and nothing is run twice; send it "
                      "under another id");
  }
  if (!is_replied.has_value()) {
    const std::string why = row.trouble.empty() ? ObjectionTo(message).value_or("") : row.trouble;
    TRY(why.empty() ? Accept(kQueueRail, {&message}) : Refuse(kQueueRail, message, why));
  }
  return queue.Take(message.message_id);
}

Status Intake::Accept(const std::string& rail, const std::vector<const BusMessage*>& messages) {
  TaskRow task;
  task.id = TRY(MakeRunId());
  task.agent = messages.front()->agent_id;
  task.kind = TaskKindName(KindOf(*messages.front()));
  task.accepted_ms = UnixMilliseconds();
  std::vector<IntakeRow> rows;
  std::vector<std::string_view> payloads;
  for (const BusMessage* message : messages) {
    rows.push_back(
        {rail, message->message_id, task.id, EnvelopeOf(*message), "", TRY(MakeReplyId())});
    payloads.push_back(message->payload);
  }
  return ledger_.AcceptFrom(rows, task, PromptOf(payloads)).With(rail);
}

Status Intake::Refuse(const std::string& rail, const BusMessage& message, const std::string& why) {
  IntakeRow row{rail, message.message_id, "", EnvelopeOf(message), why, TRY(MakeReplyId())};
  TRY(ledger_.RefuseMessage(row));
  Warn("message_refused", message, rail, why);
  return Ok();
}

Result<TaskAnswer> Intake::AnswerTo(const IntakeRow& row) {
  if (row.task.empty()) return RefusalOf(row.refusal);
  Result<TaskAnswer> kept = ParseAnswer(TRY(ledger_.Answer(row.task)));
  if (kept.ok()) return kept;
  const std::optional<TaskRow> task = TRY(ledger_.Task(row.task));
  if (!task.has_value()) return RefusalOf("its task is no longer in the ledger");
  return AnswerOfRow(*task);
}

Status Intake::ReplyOnBus() {
  const std::vector<IntakeRow> rows = TRY(ledger_.Unreplied(kBusRail, kMaxRowsAtOnce));
  TRY(WriteOnBus(rows));
  for (const IntakeRow& row : rows) TRY(ledger_.MarkReplied(kBusRail, row.message));
  return Ok();
}

// A reply that is there already was written by a process that ended before it could note that.
Status Intake::WriteOnBus(const std::vector<IntakeRow>& rows) {
  if (rows.empty()) return Ok();
  BusFile bus = TRY(BusFile::Open(home_));
  std::set<std::string> there;
  for (const std::string& text : bus.lines()) {
    BusLine line = ParseBusLine(text);
    if (line.kind == BusLineKind::kReply) there.insert(std::move(line.message.message_id));
  }
  std::string text;
  for (const IntakeRow& row : rows) {
    if (there.contains(row.reply_id)) continue;
    const std::string reply = DelegationReply(TRY(AnswerTo(row)));
    text += Text(ReplyLine(row.envelope, row.message, row.reply_id, reply, WallClock::now()), "\n");
  }
  return text.empty() ? Ok() : bus.Append(text);
}

Status Intake::ReplyInQueue() {
  const std::vector<IntakeRow> rows = TRY(ledger_.Unreplied(kQueueRail, kMaxRowsAtOnce));
  if (rows.empty()) return Ok();
  std::optional<MessageQueue> queue = TRY(MessageQueue::Open(home_));
  if (!queue.has_value())
    return Error(Kind::kConfig, Text(kQueueFile, " is gone, and replies wait to be written to it"));
  // Whoever waits on a channel is told by the platform, from the bus.
  std::vector<IntakeRow> for_channels;
  for (const IntakeRow& row : rows)
    if (TRY(queue->HasCallback(row.message))) for_channels.push_back(row);
  TRY(WriteOnBus(for_channels));
  for (const IntakeRow& row : rows) {
    const TaskAnswer answer = TRY(AnswerTo(row));
    const std::string detail = answer.detail.empty() ? "" : Text(" [", answer.detail, "]");
    TRY(answer.ok() ? queue->Complete(row.message, DelegationReply(answer))
                    : queue->Fail(row.message, answer.message + detail));
    TRY(ledger_.MarkReplied(kQueueRail, row.message));
  }
  return Ok();
}

void Intake::Warn(std::string_view event, const BusMessage& message, const std::string& rail,
                  std::string_view why) {
  const std::string agent(std::string_view(message.agent_id).substr(0, kMaxAgentNameBytes));
  // ignoring: the requester is told, and a log that cannot be written stops no task
  (void)AppendLog(home_.fd.get(), {event,
                                   agent,
                                   {{"queue", rail},
                                    {"message", message.message_id},
                                    {"reason", OneLine(why, kMaxMessageBytes)}}});
}

// They stay, and nobody else may serve the queue meanwhile: that is told once.
Status Intake::WarnOfWorkflows(MessageQueue& queue) {
  if (told_of_workflows_) return Ok();
  const int64_t rows = TRY(queue.Workflows());
  if (rows == 0) return Ok();
  told_of_workflows_ = true;
  // ignoring: as above
  (void)AppendLog(
      home_.fd.get(),
      {"message_left",
       "system",
       {{"queue", kQueueRail},
        {"reason", Text(rows,
                        " rows that `workflow` sent wait and are not taken: what they ask for "
                        "is the platform's own; end this gateway for the platform's to take "
                        "them, or submit the plan's steps as plan_step")}}});
  return Ok();
}

// A line that makes no sense stays where it is: it is told of once, not at every look.
void Intake::WarnOfLine(const std::string& line, std::string_view why) {
  constexpr std::size_t kMostTold = 1000;
  if (told_.size() >= kMostTold || !told_.insert(ShortDigest(line)).second) return;
  // ignoring: as above
  (void)AppendLog(
      home_.fd.get(),
      {"message_unreadable", "system", {{"queue", kBusRail}, {"reason", std::string(why)}}});
}

}  // namespace taskcell::gateway

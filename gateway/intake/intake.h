#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/intake/bus_file.h"
#include "gateway/intake/bus_message.h"
#include "gateway/intake/message_queue.h"
#include "gateway/ledger/ledger.h"
#include "gateway/task/answer.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

inline constexpr std::chrono::seconds kLookEvery{5};

// Serves the queues of a platform's home, bus_queue.jsonl and message_queue.db: makes tasks of the
// messages that wait there, and writes the answers back. A message is in the ledger before it is
// taken out of its queue, so that it is neither lost nor made two tasks, whatever ends this
// process; and its reply has an id that was given to it then, so that it is not written twice.
//
// From the first look that finds a queue on, <home>/locks/gateway.lock is held, as the platform's
// own gateway does: two must not serve the same queues.
class Intake {
 public:
  // Opens the home's ledger; `home` must outlive it. One thread at a time.
  static Result<std::unique_ptr<Intake>> Make(const Home& home);

  // One look at both queues: takes messages (`take`), then writes the replies that are due. Each
  // line that comes back is one thing it could not do and will try again.
  std::vector<std::string> Look(bool take);

 private:
  Intake(const Home& home, Ledger ledger) : home_(home), ledger_(std::move(ledger)) {}

  Result<bool> IsOurs();
  Status Own();
  Status RescueLate();
  Status TakeFromBus();
  Status Enter(const std::vector<std::string>& lines, std::vector<std::string>& kept);
  Status TakeFromQueue();
  Status TakeRow(MessageQueue& queue, const QueuedMessage& row);
  Status Accept(const std::string& rail, const std::vector<const BusMessage*>& messages);
  Status Refuse(const std::string& rail, const BusMessage& message, const std::string& why);
  Status ReplyOnBus();
  Status ReplyInQueue();
  Status WriteOnBus(const std::vector<IntakeRow>& rows);
  Result<TaskAnswer> AnswerTo(const IntakeRow& row);
  void Warn(std::string_view event, const BusMessage& message, const std::string& rail,
            std::string_view why);
  Status WarnOfWorkflows(MessageQueue& queue);
  void WarnOfLine(const std::string& line, std::string_view why);

  const Home& home_;
  Ledger ledger_;
  UniqueFd lock_;
  BusFile::Stamp seen_;  // of the bus, when nothing was left to be taken from it
  BusFile::Replaced replaced_;
  bool told_of_workflows_ = false;
  std::set<std::string> told_;  // digests of lines that make no sense
};

}  // namespace taskcell::gateway

#include "gateway/task/relay.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gateway/task/watch.h"

namespace taskcell::gateway {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kHandOverWait{10};

}  // namespace

Status RelayJob(const Relay& relay, Evidence& evidence) {
  std::unique_ptr<JobWatch> watch =
      TRY(JobWatch::Start(relay.gate, relay.broker, relay.cancel_fd, relay.max_turns));
  TRY(relay.gate.HandOver(relay.job, std::min(Clock::now() + kHandOverWait, relay.deadline)));
  Result<gate::JobEnd> end = relay.gate.Pump(relay.sink, relay.deadline);
  if (end.ok()) {
    evidence.end = std::move(end).value();
  } else {
    evidence.transport_error = end.error().text;
  }
  evidence.cancelled = watch->cancelled();
  evidence.over_steps = watch->over_steps();
  return Ok();
}

}  // namespace taskcell::gateway

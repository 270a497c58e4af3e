#include "gateway/task/watch.h"

#include <array>

#include "gateway/egress/start_thread.h"
#include "launcher/sys/poll.h"

namespace taskcell::gateway {
namespace {

constexpr int kLookEveryMs = 100;

}  // namespace

Result<std::unique_ptr<JobWatch>> JobWatch::Start(const gate::GateHost& gate,
                                                  const BrokerCell* broker, int cancel_fd,
                                                  uint64_t max_steps) {
  UniqueFd stop = TRY(sys::MakeEvent());
  std::unique_ptr<JobWatch> watch(new JobWatch(std::move(stop)));
  watch->thread_ = TRY(StartThread([watch = watch.get(), &gate, broker, cancel_fd, max_steps] {
                         watch->Run(gate, broker, cancel_fd, max_steps);
                       }).With("the watch over the job"));
  return watch;
}

JobWatch::~JobWatch() {
  (void)sys::SignalEvent(stop_.get());  // ignoring: an eventfd at its first signal takes it
  if (thread_.joinable()) thread_.join();
}

void JobWatch::Run(const gate::GateHost& gate, const BrokerCell* broker, int cancel_fd,
                   uint64_t max_steps) {
  // poll(2) skips an entry whose descriptor is negative: no caller, or one that has asked already.
  std::array<struct pollfd, 2> entries = {{{stop_.get(), POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
  bool ended = false;
  while (true) {
    Result<int> ready = sys::PollAll(entries, kLookEveryMs);
    if (!ready.ok() || entries[0].revents != 0) return;
    if (entries[1].revents != 0) {
      cancelled_ = true;
      entries[1].fd = -1;
      gate.Cancel();
    }
    if (ended || broker == nullptr) continue;
    const EgressTotals totals = broker->Totals();
    over_steps_ = totals.steps > max_steps;
    ended = over_steps_ || totals.credential_echoed;
    if (ended) gate.Cancel();
  }
}

}  // namespace taskcell::gateway

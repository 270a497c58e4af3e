#include "gateway/api/scripts.h"

#include <exception>
#include <thread>

#include "gateway/egress/start_thread.h"
#include "launcher/base/defer.h"
#include "launcher/base/text.h"
#include "launcher/sys/epoll.h"
#include "launcher/sys/poll.h"

namespace taskcell::gateway {
namespace {

// Libraries throw where memory runs out.
Result<ScriptAnswer> RunCaught(const Scripts::Runner& runner, const ScriptRequest& request,
                               int cancel_fd) {
  try {
    return runner(request, cancel_fd);
  } catch (const std::exception& error) {
    return Error(Kind::kSystem,
                 Text("the gateway ran out of something it needs (", error.what(), ")"));
  }
}

}  // namespace

Result<std::unique_ptr<Scripts>> Scripts::Make(Runner runner, std::function<uint64_t()> most) {
  UniqueFd cancel = TRY(sys::MakeEvent());
  return std::unique_ptr<Scripts>(
      new Scripts(std::move(runner), std::move(most), std::move(cancel)));
}

Status Scripts::Enter() {
  const uint64_t most = most_();
  std::lock_guard lock(mutex_);
  if (!accepting_)
    return Error(Kind::kSystem, "the gateway is being stopped; try again when it is back")
        .Coded("gateway_stopping");
  if (running_ >= most)
    return Error(Kind::kSystem, Text("[taskcell] max_concurrent (", most,
                                     ") scripts run already; try again when one has ended"))
        .Coded("too_many_scripts");
  ++running_;
  return Ok();
}

Result<ScriptAnswer> Scripts::Run(const ScriptRequest& request, int client_fd) {
  TRY(Enter());
  Defer leave([this] {
    std::lock_guard lock(mutex_);
    --running_;
  });
  // Readable as soon as one of them is.
  UniqueFd either = TRY(sys::MakeEpoll());
  TRY(sys::EpollAdd(either.get(), cancel_.get(), EPOLLIN, 0));
  if (client_fd >= 0) TRY(sys::EpollAdd(either.get(), client_fd, EPOLLIN | EPOLLRDHUP, 1));
  // Not on the stack of a connection, which is small.
  Result<ScriptAnswer> answer = Error(Kind::kInternal, "the script was not run");
  std::thread thread =
      TRY(StartThread([&] { answer = RunCaught(runner_, request, either.get()); }));
  thread.join();
  return answer;
}

std::size_t Scripts::Running() {
  std::lock_guard lock(mutex_);
  return running_;
}

void Scripts::Stop() {
  std::lock_guard lock(mutex_);
  accepting_ = false;
}

void Scripts::CancelAll() {
  (void)sys::SignalEvent(cancel_.get());  // ignoring: an eventfd at its first signal takes it
}

}  // namespace taskcell::gateway

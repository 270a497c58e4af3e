#include "gateway/task/cancel.h"

#include <poll.h>

#include "launcher/sys/socket.h"

namespace taskcell::gateway {

bool IsCancelled(int cancel_fd) {
  if (cancel_fd < 0) return false;
  Result<short> asked = sys::Poll(cancel_fd, POLLIN, 0);
  return !asked.ok() || asked.value() != 0;
}

bool IsCancelled(const Surroundings& surroundings) { return IsCancelled(surroundings.cancel_fd); }

Error Stopped() { return Error(Kind::kSystem, "the sandbox run was stopped").Coded("stopped"); }

TaskAnswer AnswerForFault(const Error& error, const Surroundings& surroundings) {
  if (!IsCancelled(surroundings)) return AnswerFor(error);
  TaskAnswer answer = AnswerFor(Stopped());
  answer.detail = OneLine(error.text, kMaxDetailBytes);
  return answer;
}

}  // namespace taskcell::gateway

#include "probe/attack/payloads/limit.h"

#include <sys/syscall.h>
#include <time.h>

#include "launcher/base/text.h"
#include "probe/attack/payloads/call.h"

namespace taskcell::attack {

Attempted BreakLimit(const live::Attempt& attempt) {
  Result<live::Finding> finding = live::Break(attempt);
  if (!finding.ok()) return {finding.error().err, finding.error().text};
  std::string reached = Text("after ", finding->reached);
  if (finding->signal != 0) return {-finding->signal, reached};
  return {finding->err, reached};
}

void StayFull() {
  constexpr struct timespec kMoment = {0, 100'000'000};
  (void)Call(SYS_nanosleep, &kMoment, 0);  // ignoring: a wait only
}

}  // namespace taskcell::attack

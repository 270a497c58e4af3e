#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "launcher/base/result.h"

namespace taskcell::gateway {

// One event of the audit log. `details` come out sorted by key. Nothing the AI or an engine said,
// and no secret, belongs in one.
struct AuditEvent {
  std::string_view event_type;  // "task_sandbox_unavailable", ...
  std::string agent_id;
  std::string_view severity = "warning";
  std::map<std::string, std::variant<std::string, uint64_t>, std::less<>> details;
};

using WallClock = std::chrono::system_clock;

// The moment so long after 1970 began, whatever a ledger says: at least 1970, at most 2255, which
// the clock can hold.
template <typename Period>
WallClock::time_point MomentOf(std::chrono::duration<int64_t, Period> since_1970) {
  using Duration = std::chrono::duration<int64_t, Period>;
  constexpr std::chrono::seconds kLatest{9'000'000'000};
  return WallClock::time_point(
      std::clamp(since_1970, Duration::zero(), std::chrono::duration_cast<Duration>(kLatest)));
}

// RFC 3339 in UTC with microseconds and the offset spelt out: "2026-10-02T08:15:30.123456+00:00".
std::string Rfc3339(WallClock::time_point time);

// The event as one line without its newline. Pure.
std::string AuditLine(const AuditEvent& event, WallClock::time_point time);

inline constexpr char kAuditFile[] = "security_audit.jsonl";
// How long another writer may hold the file before the event is given up.
inline constexpr std::chrono::milliseconds kAuditLockWait{5000};

// Appends the event to <home>/security_audit.jsonl in one write under an exclusive flock. The file
// is made (0600) when missing; one that is a link, a FIFO or otherwise no regular file is refused.
// The caller only warns on an Error: the event is not worth more than the task.
Status AppendAudit(int home_fd, const AuditEvent& event,
                   std::chrono::milliseconds lock_wait = kAuditLockWait);

}  // namespace taskcell::gateway

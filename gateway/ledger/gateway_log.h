#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/ledger/audit.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// One warning in the log of the gateway. Unlike an audit event it may quote what a program or an
// engine said, redacted by whoever writes it.
struct LogEvent {
  std::string_view event;  // "task_failed", ...
  std::string agent;
  std::vector<std::pair<std::string_view, std::string>> fields;  // in order
};

// "<time> WARN <event> agent=... name=...": values with anything but letters, digits and "_-.:/"
// are quoted as JSON strings, so that the event stays one line. Pure.
std::string LogLine(const LogEvent& event, WallClock::time_point time);

// The name of the log of the day of `time` (UTC), below logs/: "gateway.log.2026-10-02". Pure.
std::string LogName(WallClock::time_point time);

// Appends the event to <home>/logs/<LogName> in one write; directory (0700) and file (0600) are
// made where they are missing, and neither may be a link.
Status AppendLog(int home_fd, const LogEvent& event);

}  // namespace taskcell::gateway

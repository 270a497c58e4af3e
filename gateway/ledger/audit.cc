#include "gateway/ledger/audit.h"

#include <fcntl.h>

#include <array>
#include <cstdio>
#include <ctime>

#include "gateway/ledger/lock_file.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {

std::string Rfc3339(WallClock::time_point time) {
  const auto micros =
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = micros / 1000000;
  struct tm parts = {};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text;
  int length = std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%06d+00:00",
                             parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                             parts.tm_min, parts.tm_sec, static_cast<int>(micros % 1000000));
  return std::string(text.data(), static_cast<std::size_t>(length));
}

std::string AuditLine(const AuditEvent& event, WallClock::time_point time) {
  JsonText json;
  json.Open('{').Key("timestamp").String(Rfc3339(time));
  json.Key("event_type").String(event.event_type);
  json.Key("agent_id").String(event.agent_id);
  json.Key("severity").String(event.severity);
  json.Key("details").Open('{');
  for (const auto& [key, value] : event.details) {
    json.Key(key);
    if (const auto* number = std::get_if<uint64_t>(&value)) {
      json.Unsigned(*number);
    } else {
      json.String(std::get<std::string>(value));
    }
  }
  json.Close('}').Close('}');
  return json.text();
}

Status AppendAudit(int home_fd, const AuditEvent& event, std::chrono::milliseconds lock_wait) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  UniqueFd file =
      TRY(sys::OpenAt2(home_fd, kAuditFile, kFlags, sys::kResolveBeneath, 0600).With("audit log"));
  if (!S_ISREG(TRY(sys::Stat(file.get())).st_mode))
    return Error(Kind::kConfig, Text("audit log: ", kAuditFile, " is not a regular file"));
  TRY(LockWithin(file.get(), lock_wait).With("audit log"));
  const int64_t end = TRY(sys::Stat(file.get())).st_size;
  Status written = sys::WriteAll(file.get(), AuditLine(event, WallClock::now()) + "\n");
  // Where there is no room for a whole line, no part of one stays to spoil the next. Ignoring: what
  // cannot be written is told.
  if (!written.ok()) (void)sys::Truncate(file.get(), end);
  return std::move(written).With("audit log");
}

}  // namespace taskcell::gateway

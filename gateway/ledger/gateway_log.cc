#include "gateway/ledger/gateway_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

std::string Value(std::string_view value) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/";
  if (!value.empty() && value.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(value);
  JsonText json;
  json.String(value);
  return json.text();
}

}  // namespace

std::string LogLine(const LogEvent& event, WallClock::time_point time) {
  std::string line = Text(Rfc3339(time), " WARN ", event.event, " agent=", Value(event.agent));
  for (const auto& [name, value] : event.fields) line += Text(" ", name, "=", Value(value));
  return line;
}

std::string LogName(WallClock::time_point time) {
  constexpr std::size_t kDateBytes = 10;
  return Text("gateway.log.", Rfc3339(time).substr(0, kDateBytes));
}

Status AppendLog(int home_fd, const LogEvent& event) {
  constexpr int kFlags = O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW;
  const WallClock::time_point now = WallClock::now();
  Status made = sys::MakeDirectory(home_fd, "logs", 0700);
  if (!made.ok() && made.error().err != EEXIST) return std::move(made).With("log");
  UniqueFd file =
      TRY(sys::OpenAt2(home_fd, Text("logs/", LogName(now)), kFlags, sys::kResolveBeneath, 0600)
              .With("log"));
  if (!S_ISREG(TRY(sys::Stat(file.get())).st_mode))
    return Error(Kind::kConfig, Text("log: logs/", LogName(now), " is not a regular file"));
  return sys::WriteAll(file.get(), LogLine(event, now) + "\n").With("log");
}

}  // namespace taskcell::gateway

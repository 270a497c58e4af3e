#include "probe/cells/launch_status.h"

#include <limits>

#include "launcher/base/json_value.h"
#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

// The codes that a launch can fail with, so that an Error's code has static lifetime.
constexpr std::string_view kCodes[] = {"resource_limits_unenforced", "container_refused",
                                       "container_create_failed",    "cell_mismatch",
                                       "workspace_failed",           kNoNamespaces};
constexpr std::string_view kOtherCode = "container_create_failed";

}  // namespace

Result<LaunchStatus> ParseLaunchStatus(std::string_view line) {
  JsonValue json = TRY(ParseJson(line).With("taskcell-launch's status"));
  LaunchStatus status;
  std::string_view event = json.String("event");
  if (event == "made") {
    uint64_t pid = json.Unsigned("pid");
    if (pid == 0 || pid > std::numeric_limits<int32_t>::max())
      return Error(Kind::kViolation, "taskcell-launch's status: no valid pid");
    status.event = LaunchStatus::Event::kMade;
    status.pid = static_cast<pid_t>(pid);
    status.keyring_stays = json.String("keyring") == "inherited";
    return status;
  }
  if (event == "ended") return status;
  if (event != "failed")
    return Error(Kind::kViolation, Text("taskcell-launch's status: unknown event '",
                                        Printable(event.substr(0, 64)), "'"));
  status.event = LaunchStatus::Event::kFailed;
  status.text = json.String("text");
  status.code = kOtherCode;
  for (std::string_view code : kCodes)
    if (json.String("code") == code) status.code = code;
  return status;
}

}  // namespace taskcell::probe

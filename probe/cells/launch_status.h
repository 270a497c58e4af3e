#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::probe {

// One line that taskcell-launch writes to its status descriptor in gateway mode:
//   {"event":"made","pid":P,"keyring":"own"|"inherited"}
//   {"event":"failed","kind":K,"code":C,"text":T}
//   {"event":"ended","status":S}
inline constexpr std::size_t kMaxStatusLineBytes = 64U << 10U;
// The code of a launch that failed because this host lets nobody, or not this user, make the
// namespaces of a cell.
inline constexpr std::string_view kNoNamespaces = "namespaces_unavailable";
struct LaunchStatus {
  enum class Event : uint8_t { kMade, kFailed, kEnded };
  Event event = Event::kEnded;
  pid_t pid = 0;
  bool keyring_stays = false;  // kMade: the caller's session keyring could not be left
  std::string_view code;       // static lifetime
  std::string text;
};

// Parses one line without its newline; kViolation for anything else. A code that is not known here
// becomes container_create_failed. Pure.
Result<LaunchStatus> ParseLaunchStatus(std::string_view line);

}  // namespace taskcell::probe

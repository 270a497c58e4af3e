#pragma once

#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::probe {

// A version of the Docker Engine API: 1.minor; nothing else was ever released.
struct ApiVersion {
  int minor = 0;

  std::string Name() const { return "1." + std::to_string(minor); }
};

// What this client can speak. Below kOldestApi (Docker 20.10) an engine cannot be asked for a
// cgroup namespace of the container's own.
inline constexpr ApiVersion kOldestApi{41};
inline constexpr ApiVersion kNewestApi{51};

// Parses "1.41"; an Error of kind kViolation otherwise.
Result<ApiVersion> ParseApiVersion(std::string_view text);

// Picks the version for an engine that serves `engine_minimum` .. `engine_maximum`: the newest both
// sides know. Where there is none the Error (kUnsupported, code engine_unsupported) names both
// sides and which must be updated; the engine did answer, so it is never docker_unreachable.
Result<ApiVersion> NegotiateApi(ApiVersion engine_minimum, ApiVersion engine_maximum);

}  // namespace taskcell::probe

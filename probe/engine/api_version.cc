#include "probe/engine/api_version.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::probe {

Result<ApiVersion> ParseApiVersion(std::string_view text) {
  auto minor = text.starts_with("1.") && text.size() <= 5 ? ParseUnsigned(text.substr(2))
                                                          : std::optional<uint64_t>();
  if (!minor.has_value()) {
    return Error(Kind::kViolation, Text("'", Printable(text.substr(0, 32)),
                                        "' is no version of the Docker Engine API"));
  }
  return ApiVersion{static_cast<int>(*minor)};
}

Result<ApiVersion> NegotiateApi(ApiVersion engine_minimum, ApiVersion engine_maximum) {
  ApiVersion chosen{std::min(engine_maximum.minor, kNewestApi.minor)};
  if (chosen.minor >= engine_minimum.minor && chosen.minor >= kOldestApi.minor) return chosen;
  bool engine_too_old = engine_maximum.minor < kOldestApi.minor;
  return Error(Kind::kUnsupported,
               Text("the engine serves API ", engine_minimum.Name(), " to ", engine_maximum.Name(),
                    ", taskcell speaks ", kOldestApi.Name(), " to ", kNewestApi.Name(), "; update ",
                    engine_too_old ? "the engine" : "taskcell"))
      .Coded("engine_unsupported");
}

}  // namespace taskcell::probe

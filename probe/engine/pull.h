#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "probe/engine/answers.h"
#include "probe/engine/endpoint.h"

namespace taskcell::probe {

// The one way an image comes to this machine, and only when a person asks for it: nothing that
// makes cells, or looks at what a cell would need, is linked with this.

// The name an engine is asked for: `image`, with the tag "latest" where it has neither tag nor
// digest, since an engine would pull every tag of it. Error code pull_failed for what is an id and
// no name. Pure.
Result<std::string> NameToPull(const std::string& image);

// What a person can do where an engine did not pull for the reason `why`. Pure.
std::string_view PullRemedy(std::string_view why);

// How long an engine may say nothing of its pull, and how long the pull may take altogether.
inline constexpr std::chrono::seconds kPullQuiet{300};
inline constexpr std::chrono::hours kPullLimit{6};
// One line of its progress, and all of them.
inline constexpr std::size_t kMaxPullLineBytes = 64U << 10U;
inline constexpr std::size_t kMaxPullBytes = 256U << 20U;

// Has the engine at `endpoint` pull `image` into its own store, and returns what it has there then.
// No credential is sent. `on_line` gets each line of its progress. Given up (code stopped) as soon
// as `cancel_fd` (-1: never) is readable. Error codes: pull_failed with the engine's words and the
// remedy, docker_unreachable where its answer is cut off, makes no sense or never ends.
Result<ImageAnswer> PullImage(const Endpoint& endpoint, const std::string& image, int cancel_fd,
                              const std::function<void(const PullLine&)>& on_line);

}  // namespace taskcell::probe

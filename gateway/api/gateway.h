#pragma once

#include <chrono>
#include <string>

#include "launcher/base/result.h"

namespace taskcell::gateway {

inline constexpr std::chrono::seconds kSweepEvery{600};
// How long tasks that run may go on after SIGTERM, before they are cancelled.
inline constexpr std::chrono::seconds kDefaultDrain{60};
inline constexpr std::chrono::seconds kMaxDrain{24 * 3600};
// How long cancelled ones may take, before this process ends all the same; their cells die with it.
inline constexpr std::chrono::seconds kCancelWait{20};

struct GatewayOptions {
  std::string home;  // --home; empty: as the environment says
  std::chrono::seconds drain = kDefaultDrain;
};

// Serves a home until SIGTERM or SIGINT: takes tasks in over its socket, runs them, sweeps at the
// start and every ten minutes. On the signal it takes in and starts nothing more, lets what runs
// end for as long as `drain` says, then cancels it; a second signal cancels at once. What waits
// stays in the ledger. Error code gateway_running when another one serves the home.
Status RunGateway(const GatewayOptions& options);

}  // namespace taskcell::gateway

#pragma once

#include <vector>

#include "gateway/config/allowed_host.h"
#include "gateway/egress/route.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// The listeners of one cell and what is behind them. One of the two may be missing.
struct CellWays {
  UniqueFd listener;  // of the route
  Route route;
  UniqueFd tunnel_listener;
  std::vector<AllowedHost> allowed;  // places a tunnel may lead to; an empty list has none
};

}  // namespace taskcell::gateway

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gateway/config/accounts.h"
#include "gateway/config/agent_config.h"
#include "gateway/config/home.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/egress/route.h"
#include "gateway/runtimes/runtime.h"
#include "gateway/task/task.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// A task that may run: everything that was decided before anything was made.
struct Admission {
  SandboxSettings settings;  // with the agent's own lower limits applied
  TaskcellSettings own_settings;
  Runtime runtime = Runtime::kClaude;
  WireApi api = WireApi::kAnthropicMessages;
  std::string provider;
  std::string model;       // as the program is to use it
  std::string executable;  // in the cell
  std::unique_ptr<probe::CellEngine> engine;
  UniqueFd root;  // native with a root directory: the pin
  uint64_t root_device = 0;
  uint64_t root_inode = 0;
  std::string account;  // its id
  bool oauth = false;
  std::string override_url;
  Route route;
};

// Decides whether the task may run, in the order of the guide: settings, runtime, network_access,
// root user, model and time limit, engine, image, account. The first refusal wins; its Error
// carries the guide's code. No request goes to an engine before every check of the configuration
// has passed, and nothing is written anywhere.
Result<Admission> Admit(const Home& home, const AgentConfig& agent, Surroundings& surroundings);

// Reads config.toml; a missing file is an empty one. Error code invalid_config.
Result<ConfigValue> ReadConfig(const Home& home);

}  // namespace taskcell::gateway

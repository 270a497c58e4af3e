#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/account_wish.h"
#include "gateway/config/accounts.h"
#include "gateway/config/agent_config.h"
#include "gateway/config/allowed_host.h"
#include "gateway/config/environment.h"
#include "gateway/config/home.h"
#include "gateway/config/rotation.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/egress/route.h"
#include "gateway/ledger/ledger.h"
#include "gateway/runtimes/runtime.h"
#include "gateway/task/native_root.h"
#include "gateway/task/task.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// An account and the way its credential takes to the provider; where it goes into the cell, the
// route holds it and leads nowhere.
struct Payer {
  std::string account;  // its id
  std::string fingerprint;
  bool oauth = false;
  Route route;
  std::optional<OauthLogin> login = {};  // of a credential document
  std::optional<uint64_t> budget_cents = {};
};

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
  NativeRoot root;
  std::string override_url;
  Uplink uplink;
  // Where tunnels of the cell may lead: what the runtime needs by itself, and the agent's
  // allow_hosts.
  std::vector<AllowedHost> tunnel_hosts;
  // The program takes no address of a broker: no route, and the credential goes into the cell.
  bool credential_inside = false;
  std::vector<Payer> payers;     // in the order to be tried; at least one
  std::optional<Ledger> ledger;  // of the home, as accounts were looked up in it; none: no task ran
  int64_t rate_limit_cooldown_s = 0;
  std::vector<std::string> warnings;  // about settings that have no effect
};

// Decides whether the task may run, in the order of the guide: settings, runtime, network_access,
// root user, platform, model and time limit, engine, image, account (by the ledger, which accounts
// are cooling down). The first refusal wins; its Error carries the guide's code. No request goes to
// an engine before every check of the configuration has passed, and nothing is written anywhere.
Result<Admission> Admit(const Home& home, const AgentConfig& agent, Surroundings& surroundings);

// The same without an account: whether a cell of the agent may be made that nothing pays for, in
// which no provider is asked.
Result<Admission> AdmitCell(const Home& home, const AgentConfig& agent, Surroundings& surroundings);

// A setting for which an agent's tasks are refused whatever the host is like, and where it stands
// in agent.toml.
struct AgentFault {
  std::string_view table;
  std::string_view key;
  Error error;
};

// All of them, by the very checks of Admit, or of the host's runner where the agent's switch is
// off. What limits the agent asks to lower is not among them. Pure.
std::vector<AgentFault> FindAgentFaults(const SandboxSettings& settings,
                                        const TaskcellSettings& own_settings,
                                        const AgentConfig& agent, const Environment& environment);

// The accounts that fit `wish`, in the order in which they are to be tried; those that rest are
// left out. Error codes no_account, invalid_config, workspace_failed.
struct ChosenAccounts {
  std::vector<Account> accounts;
  std::optional<Ledger> ledger;  // as Admission has it
};
Result<ChosenAccounts> ChooseAccounts(const Home& home, const ConfigValue& config,
                                      const AccountWish& wish, const Environment& environment,
                                      const Rotation& rotation);

// Reads config.toml; a missing file is an empty one. Error code invalid_config.
Result<ConfigValue> ReadConfig(const Home& home);

}  // namespace taskcell::gateway

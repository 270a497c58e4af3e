#include "gateway/task/admission.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>

#include "gateway/config/rotation.h"
#include "gateway/config/toml_document.h"
#include "gateway/egress/routes.h"
#include "gateway/ledger/ledger.h"
#include "gateway/runtimes/plan_job.h"
#include "gateway/task/account_choice.h"
#include "gateway/task/platform.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

Error Invalid(std::string text) {
  return Error(Kind::kConfig, std::move(text)).Coded("invalid_config");
}

Status CheckNetwork(const AgentConfig& agent) {
  if (agent.network_access) return Ok();
  return Error(Kind::kConfig,
               "the AI inside the sandbox must reach its model provider, but this agent has "
               "[container] network_access = false; set network_access = true to use the sandbox")
      .Coded("network_disabled");
}

Status CheckUser(uint32_t effective_uid) {
  if (effective_uid != 0) return Ok();
  return Error(Kind::kConfig,
               "the gateway runs as root (uid 0); the sandbox refuses to start containers as root")
      .Coded("root_user");
}

// Splits "<provider>/<model>" for openai_compat; a bare model is openai's.
Status ChooseModel(const std::string& wanted, Admission& admission) {
  if (wanted.empty()) return Invalid("the agent has no model: set [model] preferred in agent.toml");
  admission.model = wanted;
  switch (admission.runtime) {
    case Runtime::kClaude:
      admission.api = WireApi::kAnthropicMessages;
      admission.provider = "anthropic";
      return Ok();
    case Runtime::kCodex:
      admission.api = WireApi::kOpenAiResponses;
      admission.provider = "openai";
      return Ok();
    case Runtime::kGrok:
      admission.api = WireApi::kOpenAiChat;
      admission.provider = "xai";
      return Ok();
    case Runtime::kAntigravity:
      admission.provider = "gemini";
      return Ok();
    default:
      break;
  }
  admission.api = WireApi::kOpenAiChat;
  admission.provider = "openai";
  std::size_t slash = wanted.find('/');
  if (slash == std::string::npos) return Ok();
  admission.provider = wanted.substr(0, slash);
  admission.model = wanted.substr(slash + 1);
  if (admission.provider.empty() || admission.model.empty())
    return Invalid(Text("[model] preferred `", Printable(wanted), "` must be <provider>/<model>"));
  return Ok();
}

// The provider must be one the broker has an address for; an override must be usable.
Status CheckProvider(const Environment& environment, const std::string& wanted,
                     Admission& admission) {
  if (admission.credential_inside) return Ok();
  if (ProviderAddress(admission.api, admission.provider).empty())
    return Invalid(Text("[model] preferred `", Printable(wanted), "` names the provider `",
                        Printable(admission.provider), "`, which is not known"));
  std::string_view variable = OverrideVariable(admission.provider);
  if (variable.empty()) return Ok();
  admission.override_url = Lookup(environment, variable);
  if (admission.override_url.empty()) return Ok();
  Result<Upstream> upstream = ParseUpstream(admission.override_url);
  if (upstream.ok()) return Ok();
  return Invalid(Text(variable, " of the gateway: ", upstream.error().text));
}

// The runtime's own places stand before the agent's.
Status ChooseTunnels(const AgentConfig& agent, Admission& admission) {
  for (std::string_view place : OwnHosts(admission.runtime))
    admission.tunnel_hosts.push_back(TRY(ParseAllowedHost(place)));
  admission.credential_inside = !admission.tunnel_hosts.empty();
  for (const AllowedHost& host : agent.allow_hosts) {
    bool is_there = std::find(admission.tunnel_hosts.begin(), admission.tunnel_hosts.end(), host) !=
                    admission.tunnel_hosts.end();
    if (!is_there) admission.tunnel_hosts.push_back(host);
  }
  return Ok();
}

// A tunnel connects to the very address that was looked at; the operator's proxy would look for
// itself.
Status CheckTunnels(const Admission& admission) {
  if (admission.tunnel_hosts.empty() || admission.uplink.proxy.empty()) return Ok();
  if (admission.credential_inside)
    return Invalid(Text("runtime `", FamilyName(admission.runtime),
                        "` goes through tunnels, which do not take [taskcell] upstream_proxy: "
                        "remove that, or use another runtime"));
  return Invalid(
      "[taskcell] allow_hosts of agent.toml opens tunnels, which do not take [taskcell] "
      "upstream_proxy of config.toml: remove one of the two");
}

Status CheckPids(const SandboxSettings& settings) {
  if (settings.pids >= cell::kLeastPids) return Ok();
  return Invalid(Text("the limit pids (", settings.pids, ") is too small: a cell takes ",
                      cell::kLeastPids, " for itself and its program, and tools take more"));
}

Status CheckTimeout(const AgentConfig& agent) {
  if (agent.timeout_ms > 0) return Ok();
  return Invalid("[container] timeout_ms of agent.toml must not be 0");
}

// A root directory for native cells is pinned here, so that what is checked is what is used.
Status PinRoot(Admission& admission) {
  const TaskcellSettings& own = admission.own_settings;
  if (own.root == "host") return Ok();
  Result<UniqueFd> root =
      sys::OpenAt2(AT_FDCWD, own.root, O_PATH | O_DIRECTORY | O_NOFOLLOW, RESOLVE_NO_SYMLINKS);
  if (!root.ok())
    return Invalid(Text("[taskcell] root: ", root.error().text,
                        "; it must be a directory reached without symbolic links"));
  struct stat info = TRY(sys::Stat(root->get()));
  admission.root = std::move(root).value();
  admission.root_device = info.st_dev;
  admission.root_inode = info.st_ino;
  return Ok();
}

Status CheckImage(Admission& admission) {
  if (admission.engine->kind() == cell::Engine::kNative) return Ok();
  TRY(admission.engine->CheckImage(admission.settings.image));
  return Ok();
}

// What runs of this home taught about accounts; nothing where none ever ran.
Result<std::vector<AccountState>> ReadAccountStates(const Home& home) {
  std::optional<Ledger> ledger = TRY(Ledger::OpenExisting(home.fd.get(), home.path));
  if (!ledger.has_value()) return std::vector<AccountState>();
  return ledger->Accounts();
}

Result<Payer> PayerFor(const Account& account, const Admission& admission) {
  if (admission.credential_inside) {
    Payer payer{account.id, account.Fingerprint(), false, Route()};
    payer.route.credential.secret = account.secret;
    return payer;
  }
  RouteRequest request;
  request.api = admission.api;
  request.provider = admission.provider;
  request.models = ModelsFor(admission.runtime, admission.model);
  request.secret = account.secret;
  request.uplink = admission.uplink;
  request.override_url = admission.override_url;
  Result<Route> route = RouteFor(std::move(request));
  if (!route.ok())
    return Invalid(Text("account `", Printable(account.id), "`: ", route.error().text));
  return Payer{account.id, account.Fingerprint(), account.type == AccountType::kOauth,
               std::move(route).value()};
}

Status ChoosePayers(const Home& home, const ConfigValue& config, const AgentConfig& agent,
                    const Environment& environment, Admission& admission) {
  Rotation rotation = TRY(ReadRotation(config));
  AccountWish wish;
  wish.family = FamilyName(admission.runtime);
  wish.provider = admission.provider;
  wish.oauth_token = admission.runtime == Runtime::kClaude;
  wish.pool = agent.account_pool;
  admission.rate_limit_cooldown_s = rotation.rate_limit_cooldown_s;
  std::optional<Error> unusable;
  for (const Account& account : TRY(ChooseAccounts(home, config, wish, environment, rotation))) {
    Result<Payer> payer = PayerFor(account, admission);
    if (payer.ok()) {
      admission.payers.push_back(std::move(payer).value());
    } else if (!unusable.has_value()) {
      unusable = payer.error();
    }
  }
  if (admission.payers.empty()) return *std::move(unusable);
  return Ok();
}

}  // namespace

Result<std::vector<Account>> ChooseAccounts(const Home& home, const ConfigValue& config,
                                            const AccountWish& wish, const Environment& environment,
                                            const Rotation& rotation) {
  std::vector<Account> accounts = TRY(LoadAccounts(config, home.fd.get(), environment));
  const std::vector<Account> fitting = TRY(FittingAccounts(accounts, wish));
  Result<std::vector<AccountState>> states = ReadAccountStates(home);
  if (!states.ok()) return std::move(states).error().Coded("workspace_failed");
  return OrderAccounts(fitting, states.value(), rotation.strategy, ::time(nullptr));
}

Result<ConfigValue> ReadConfig(const Home& home) {
  Result<ConfigValue> config = ReadToml(home.fd.get(), "config.toml", "config.toml");
  if (config.ok()) return config;
  if (config.error().err == ENOENT) return ConfigValue();
  return std::move(config).error().Coded("invalid_config");
}

Result<Admission> Admit(const Home& home, const AgentConfig& agent, Surroundings& surroundings) {
  Admission admission;
  const ConfigValue config = TRY(ReadConfig(home));
  admission.warnings = ReadEscapeHatches(config).warnings;
  admission.settings = TRY(ReadSandboxSettings(config));
  admission.own_settings = TRY(ReadTaskcellSettings(config));
  admission.settings.cpu_may_be_missing = admission.own_settings.cpu_may_be_missing;
  admission.runtime = TRY(ParseRuntime(agent.provider));
  TRY(ChooseTunnels(agent, admission));
  TRY(CheckNetwork(agent));
  TRY(CheckUser(surroundings.effective_uid));
  TRY(CheckPlatform());
  TRY(LowerLimits(agent.limits, admission.settings));
  TRY(CheckPids(admission.settings));
  TRY(ChooseModel(agent.model, admission));
  TRY(CheckTimeout(agent));
  TRY(CheckProvider(surroundings.environment, agent.model, admission));
  admission.uplink = TRY(ReadUplink(admission.own_settings));
  TRY(CheckTunnels(admission));
  TRY(PinRoot(admission));
  auto executable = admission.settings.executables.find(FamilyName(admission.runtime));
  if (executable != admission.settings.executables.end()) admission.executable = executable->second;
  admission.engine = TRY(surroundings.make_engine(admission.own_settings));
  TRY(admission.engine->CheckReachable());
  TRY(CheckImage(admission));
  if (admission.engine->NeedsLimitsProbe())
    TRY(surroundings.prove_limits(home, *admission.engine, admission.settings));
  TRY(ChoosePayers(home, config, agent, surroundings.environment, admission));
  return admission;
}

}  // namespace taskcell::gateway

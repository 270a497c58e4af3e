#include "gateway/task/admission.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>

#include "gateway/config/rotation.h"
#include "gateway/config/toml_document.h"
#include "gateway/egress/routes.h"
#include "gateway/runtimes/plan_job.h"
#include "gateway/task/account_choice.h"
#include "gateway/task/engine_fault.h"
#include "gateway/task/platform.h"
#include "launcher/base/text.h"

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

// The provider must be one the broker has an address for, and no way out itself; an override must
// be usable.
Status CheckProvider(const Environment& environment, const std::string& wanted,
                     Admission& admission) {
  if (admission.credential_inside) return Ok();
  if (ProviderAddress(admission.api, admission.provider).empty())
    return Invalid(Text("[model] preferred `", Printable(wanted), "` names the provider `",
                        Printable(admission.provider), "`, which is not known"));
  if (SearchesByItself(admission.model) && !admission.own_settings.open_egress)
    return Invalid(Text("[model] preferred `", Printable(wanted),
                        "` searches the web by itself, so what it is told may leave by its "
                        "provider: name another model, or set [taskcell] egress = \"open\""));
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

// A tunnel's socket is taken over once it stands, which TLS to the proxy itself would be wrapped
// around.
Status CheckTunnels(const Admission& admission) {
  if (admission.tunnel_hosts.empty() || !admission.uplink.proxy.starts_with("https://"))
    return Ok();
  return Invalid(Text(admission.credential_inside
                          ? Text("runtime `", FamilyName(admission.runtime), "`")
                          : std::string("[taskcell] allow_hosts of agent.toml"),
                      " goes through tunnels, which take an http:// [taskcell] upstream_proxy "
                      "only: name that, or remove one of the two"));
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

Status CheckImage(Admission& admission) {
  if (admission.engine->kind() == cell::Engine::kNative) return Ok();
  Result<probe::ImageFacts> image = admission.engine->CheckImage(admission.settings.image);
  if (!image.ok()) return NameMissingImage(std::move(image).error(), admission.settings.image);
  return Ok();
}

Result<Payer> PayerFor(const Account& account, const Admission& admission) {
  if (admission.credential_inside) {
    Payer payer{account.id, account.Fingerprint(), false, Route()};
    payer.route.credential.secret = account.secret;
    payer.route.uplink = admission.uplink;
    return payer;
  }
  RouteRequest request;
  request.api = admission.api;
  request.provider = admission.provider;
  request.models = ModelsFor(admission.runtime, admission.model);
  request.secret = account.secret;
  if (account.login.has_value()) {
    request.login = true;
    request.login_account = account.login->account;
    if (account.login->CanBeRenewed())
      TRY(ParseUpstream(account.login->endpoint.url)
              .With(Text("[taskcell.oauth.", account.provider, "] token_endpoint")));
  }
  request.uplink = admission.uplink;
  request.override_url = admission.override_url;
  Result<Route> route = RouteFor(std::move(request));
  if (!route.ok())
    return Invalid(Text("account `", Printable(account.id), "`: ", route.error().text));
  return Payer{account.id,
               account.Fingerprint(),
               account.type == AccountType::kOauth,
               std::move(route).value(),
               account.login,
               account.budget_cents};
}

Status ChoosePayers(const Home& home, const ConfigValue& config, const AgentConfig& agent,
                    const Environment& environment, Admission& admission) {
  Rotation rotation = TRY(ReadRotation(config));
  AccountWish wish;
  wish.family = FamilyName(admission.runtime);
  wish.provider = admission.provider;
  wish.oauth_token = admission.runtime == Runtime::kClaude;
  wish.document = admission.runtime == Runtime::kClaude || admission.runtime == Runtime::kCodex;
  wish.pool = agent.account_pool;
  admission.rate_limit_cooldown_s = rotation.rate_limit_cooldown_s;
  std::optional<Error> unusable;
  ChosenAccounts chosen = TRY(ChooseAccounts(home, config, wish, environment, rotation));
  admission.ledger = std::move(chosen.ledger);
  for (const Account& account : chosen.accounts) {
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

Result<ChosenAccounts> ChooseAccounts(const Home& home, const ConfigValue& config,
                                      const AccountWish& wish, const Environment& environment,
                                      const Rotation& rotation) {
  std::vector<Account> accounts = TRY(LoadAccounts(config, home.fd.get(), environment));
  const std::vector<Account> fitting = TRY(FittingAccounts(accounts, wish));
  const int64_t now = ::time(nullptr);
  Result<AccountHistory> history = ReadAccountHistory(home, now);
  if (!history.ok()) return std::move(history).error().Coded("workspace_failed");
  ChosenAccounts chosen;
  chosen.accounts = TRY(OrderAccounts(fitting, history.value(), rotation.strategy, now));
  chosen.ledger = std::move(history->ledger);
  return chosen;
}

Result<ConfigValue> ReadConfig(const Home& home) {
  Result<ConfigValue> config = ReadToml(*home.files, home.fd.get(), "config.toml", "config.toml");
  if (config.ok()) return config;
  if (config.error().err == ENOENT) return ConfigValue();
  return std::move(config).error().Coded("invalid_config");
}

namespace {

Result<Admission> AdmitBy(const ConfigValue& config, const Home& home, const AgentConfig& agent,
                          Surroundings& surroundings) {
  Admission admission;
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
  admission.root = TRY(PinNativeRoot(admission.own_settings));
  auto executable = admission.settings.executables.find(FamilyName(admission.runtime));
  if (executable != admission.settings.executables.end()) admission.executable = executable->second;
  admission.engine = TRY(surroundings.make_engine(admission.own_settings));
  TRY(admission.engine->CheckReachable());
  TRY(admission.engine->CheckShared({home.path, surroundings.programs.init}));
  TRY(CheckImage(admission));
  if (admission.engine->NeedsLimitsProbe())
    TRY(surroundings.prove_limits(home, *admission.engine, admission.settings));
  return admission;
}

}  // namespace

std::vector<AgentFault> FindAgentFaults(const SandboxSettings& settings,
                                        const TaskcellSettings& own_settings,
                                        const AgentConfig& agent, const Environment& environment) {
  std::vector<AgentFault> faults;
  auto keep = [&faults](std::string_view table, std::string_view key, const Status& checked) {
    if (!checked.ok()) faults.push_back({table, key, checked.error()});
    return checked.ok();
  };
  auto found = [](const auto& result) { return result.ok() ? Ok() : Status(result.error()); };
  Admission admission;
  admission.settings = settings;
  admission.own_settings = own_settings;
  const bool in_cell = agent.sandbox_enabled;
  const Result<Runtime> runtime =
      in_cell ? ParseRuntime(agent.provider) : ParseHostRuntime(agent.provider);
  const bool has_runtime = keep("runtime", "provider", found(runtime));
  keep("container", "timeout_ms", CheckTimeout(agent));
  if (has_runtime) admission.runtime = runtime.value();
  if (in_cell) keep("container", "network_access", CheckNetwork(agent));
  if (in_cell && LowerLimits(agent.limits, admission.settings).ok())
    keep("taskcell.limits", "pids", CheckPids(admission.settings));
  if (!has_runtime) return faults;
  if (!in_cell) {
    keep("model", "preferred", ChooseModel(agent.model, admission));
    return faults;
  }
  if (keep("taskcell", "allow_hosts", ChooseTunnels(agent, admission)) &&
      keep("model", "preferred", ChooseModel(agent.model, admission)))
    keep("model", "preferred", CheckProvider(environment, agent.model, admission));
  Result<Uplink> uplink = ReadUplink(own_settings);
  if (!uplink.ok()) return faults;  // a matter of config.toml
  admission.uplink = std::move(uplink).value();
  keep("taskcell", "allow_hosts", CheckTunnels(admission));
  return faults;
}

Result<Admission> AdmitCell(const Home& home, const AgentConfig& agent,
                            Surroundings& surroundings) {
  return AdmitBy(TRY(ReadConfig(home)), home, agent, surroundings);
}

Result<Admission> Admit(const Home& home, const AgentConfig& agent, Surroundings& surroundings) {
  const ConfigValue config = TRY(ReadConfig(home));
  Admission admission = TRY(AdmitBy(config, home, agent, surroundings));
  TRY(ChoosePayers(home, config, agent, surroundings.environment, admission));
  return admission;
}

}  // namespace taskcell::gateway

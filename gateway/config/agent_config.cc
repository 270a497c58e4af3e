#include "gateway/config/agent_config.h"

#include <algorithm>

#include "gateway/config/table_reader.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kInvalidConfig = "invalid_config";
constexpr std::size_t kShownHostBytes = 280;

Status ReadIdentity(const ConfigValue& document, AgentConfig& config) {
  TableReader agent(TRY(FindTable(document, {"agent"})), "agent");
  TRY(agent.String("name", config.name));
  TRY(agent.String("role", config.role));
  if (!IsAgentName(config.name))
    return agent.Complain(
        "name", Text("must be 1 to ", kMaxAgentNameBytes, " letters, digits, '_' or '-'"));
  TableReader runtime(TRY(FindTable(document, {"runtime"})), "runtime");
  return runtime.String("provider", config.provider);
}

Status ReadModel(const ConfigValue& document, AgentConfig& config) {
  TableReader model(TRY(FindTable(document, {"model"})), "model");
  TRY(model.String("preferred", config.model));
  config.model = Trim(config.model);
  TRY(model.Strings("account_pool", config.account_pool));
  for (std::string& entry : config.account_pool) entry = Trim(entry);
  std::erase_if(config.account_pool, [](const std::string& entry) { return entry.empty(); });
  return Ok();
}

Status ReadContainer(const ConfigValue& document, AgentConfig& config) {
  TableReader container(TRY(FindTable(document, {"container"})), "container");
  TRY(container.Boolean("sandbox_enabled", config.sandbox_enabled));
  TRY(container.Boolean("network_access", config.network_access));
  const ConfigValue* timeout = container.Find("timeout_ms");
  if (timeout == nullptr) return Ok();
  if (timeout->type != ConfigValue::Type::kInteger || timeout->integer < 0)
    return container.Complain("timeout_ms", "must be a positive integer");
  config.timeout_ms = static_cast<uint64_t>(timeout->integer);
  if (config.timeout_ms > kMaxTimeoutMs)
    return container.Complain("timeout_ms", Text("must be at most ", kMaxTimeoutMs));
  return Ok();
}

Status ReadCapabilities(const ConfigValue& document, AgentConfig& config) {
  TableReader capabilities(TRY(FindTable(document, {"capabilities"})), "capabilities");
  bool computer_use = false;
  std::vector<std::string> allowed_tools;  // read for its type only: the sandbox has its own set
  TRY(capabilities.Strings("denied_tools", config.denied_tools));
  TRY(capabilities.Strings("allowed_tools", allowed_tools));
  TRY(capabilities.Boolean("computer_use", computer_use));
  if (!computer_use) config.denied_tools.emplace_back("computer");
  std::sort(config.denied_tools.begin(), config.denied_tools.end());
  config.denied_tools.erase(std::unique(config.denied_tools.begin(), config.denied_tools.end()),
                            config.denied_tools.end());
  return Ok();
}

Status ReadLimit(const TableReader& reader, std::string_view key, uint64_t max,
                 std::optional<uint64_t>& out) {
  if (reader.Find(key) == nullptr) return Ok();
  uint64_t value = 0;
  TRY(reader.Positive(key, max, value));
  out = value;
  return Ok();
}

Status ReadAllowHosts(const TableReader& own, AgentConfig& config) {
  std::vector<std::string> hosts;
  TRY(own.Strings("allow_hosts", hosts));
  if (hosts.size() > kMaxAllowedHosts)
    return own.Complain("allow_hosts", Text("must name at most ", kMaxAllowedHosts, " hosts"));
  for (const std::string& text : hosts) {
    Result<AllowedHost> host = ParseAllowedHost(text);
    if (!host.ok())
      return own.Complain(
          "allow_hosts",
          Text("must hold host:port, such as \"pypi.org:443\", not \"",
               Printable(text).substr(0, kShownHostBytes), "\": ", host.error().text));
    if (std::find(config.allow_hosts.begin(), config.allow_hosts.end(), host.value()) !=
        config.allow_hosts.end())
      return own.Complain("allow_hosts", Text("names ", text, " twice"));
    config.allow_hosts.push_back(std::move(host).value());
  }
  return Ok();
}

Status ReadOwnKeys(const ConfigValue& document, AgentConfig& config) {
  TableReader own(TRY(FindTable(document, {"taskcell"})), "taskcell");
  TRY(own.CheckKeys({"allow_hosts", "export", "limits"}));
  TRY(own.Boolean("export", config.exports));
  TRY(ReadAllowHosts(own, config));
  TableReader limits(TRY(FindTable(document, {"taskcell", "limits"})), "taskcell.limits");
  TRY(limits.CheckKeys({"memory_bytes", "pids", "cpu_millis", "max_turns"}));
  TRY(ReadLimit(limits, "memory_bytes", SandboxSettings::kMaxMemoryBytes,
                config.limits.memory_bytes));
  TRY(ReadLimit(limits, "pids", SandboxSettings::kMaxPids, config.limits.pids));
  TRY(ReadLimit(limits, "cpu_millis", SandboxSettings::kMaxCpuMillis, config.limits.cpu_millis));
  return ReadLimit(limits, "max_turns", SandboxSettings::kMaxTurns, config.limits.max_turns);
}

Result<AgentConfig> Read(const ConfigValue& document) {
  AgentConfig config;
  TRY(ReadIdentity(document, config));
  TRY(ReadModel(document, config));
  TRY(ReadContainer(document, config));
  TRY(ReadCapabilities(document, config));
  TRY(ReadOwnKeys(document, config));
  return config;
}

Error Invalid(std::string text) {
  return Error(Kind::kConfig, std::move(text)).Coded(kInvalidConfig);
}

Status Lower(std::string_view key, const std::optional<uint64_t>& wish, uint64_t& limit) {
  if (!wish.has_value()) return Ok();
  if (*wish > limit)
    return Invalid(Text("agent.toml [taskcell.limits] ", key, " (", *wish,
                        ") may not be above [container.sandbox] ", key, " (", limit, ")"));
  limit = *wish;
  return Ok();
}

}  // namespace

Status LowerLimits(const LimitOverrides& wish, SandboxSettings& settings) {
  TRY(Lower("memory_bytes", wish.memory_bytes, settings.memory_bytes));
  TRY(Lower("pids", wish.pids, settings.pids));
  TRY(Lower("cpu_millis", wish.cpu_millis, settings.cpu_millis));
  TRY(Lower("max_turns", wish.max_turns, settings.max_turns));
  if (settings.tmp_bytes + settings.workspace_bytes > settings.memory_bytes)
    return Invalid(Text("agent.toml [taskcell.limits] memory_bytes (", settings.memory_bytes,
                        ") is below tmp_bytes + workspace_bytes (", settings.tmp_bytes, " + ",
                        settings.workspace_bytes, ")"));
  return Ok();
}

bool IsAgentName(std::string_view name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  return !name.empty() && name.size() <= kMaxAgentNameBytes &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

Result<AgentConfig> ReadAgentConfig(const ConfigValue& document) {
  Result<AgentConfig> config = Read(document);
  if (config.ok()) return config;
  return std::move(config).error().With("agent.toml").Coded(kInvalidConfig);
}

}  // namespace taskcell::gateway

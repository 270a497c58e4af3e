#include "gateway/config/check_configuration.h"

#include <cerrno>
#include <map>
#include <optional>

#include "gateway/config/accounts.h"
#include "gateway/config/agent_config.h"
#include "gateway/config/rotation.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/config/toml_document.h"
#include "gateway/config/uplink.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr char kConfigFile[] = "config.toml";

// Messages begin with the file's short name where its place is not known: here it is.
std::string WithoutName(std::string text) {
  for (std::string_view name : {"config.toml: ", "agent.toml: ", "agent.toml "}) {
    if (text.starts_with(name)) return text.substr(name.size());
  }
  return text;
}

class Problems {
 public:
  void Fatal(std::string file, std::string text) {
    found_.push_back({std::move(file), WithoutName(std::move(text)), true});
  }
  void Warn(std::string file, std::string text) {
    found_.push_back({std::move(file), std::move(text), false});
  }
  std::vector<ConfigProblem> Take() { return std::move(found_); }

 private:
  std::vector<ConfigProblem> found_;
};

void CheckAccounts(const Home& home, const ConfigValue& config, const Environment& environment,
                   Problems& problems) {
  Result<std::vector<Account>> accounts = LoadAccounts(config, home.fd.get(), environment);
  if (!accounts.ok()) {
    problems.Fatal(kConfigFile, accounts.error().text);
    return;
  }
  std::map<std::string, int> ids;
  for (const Account& account : accounts.value()) {
    const std::string name = Text("account `", Printable(account.id), "`");
    if (!account.unavailable.empty())
      problems.Warn(kConfigFile, Text(name, " cannot be used: ", account.unavailable));
    if (++ids[account.id] == 2)
      problems.Warn(kConfigFile, Text(name, " is there twice: give each account an id of its own"));
  }
}

void CheckRotation(const ConfigValue& config, Problems& problems) {
  Result<Rotation> rotation = ReadRotation(config);
  if (!rotation.ok()) {
    problems.Fatal(kConfigFile, rotation.error().text);
    return;
  }
  for (std::string& warning : rotation->warnings) problems.Warn(kConfigFile, std::move(warning));
}

// The settings, where they can be read: agents are measured against them.
std::optional<SandboxSettings> CheckMain(const Home& home, const Environment& environment,
                                         Problems& problems) {
  Result<ConfigValue> config = ReadToml(*home.files, home.fd.get(), kConfigFile, kConfigFile);
  if (!config.ok() && config.error().err == ENOENT) {
    problems.Warn(kConfigFile, "there is none: every setting has its default");
    config = ConfigValue();
  }
  if (!config.ok()) {
    problems.Fatal(kConfigFile, config.error().text);
    return std::nullopt;
  }
  Result<SandboxSettings> settings = ReadSandboxSettings(config.value());
  if (!settings.ok()) problems.Fatal(kConfigFile, settings.error().text);
  Result<TaskcellSettings> own = ReadTaskcellSettings(config.value());
  if (!own.ok()) problems.Fatal(kConfigFile, own.error().text);
  if (Result<Uplink> uplink = own.ok() ? ReadUplink(own.value()) : Uplink(); !uplink.ok())
    problems.Fatal(kConfigFile, uplink.error().text);
  CheckAccounts(home, config.value(), environment, problems);
  CheckRotation(config.value(), problems);
  for (std::string& warning : ReadEscapeHatches(config.value()).warnings)
    problems.Warn(kConfigFile, std::move(warning));
  for (std::string& misplaced : FindMisplacedKeys(config.value()))
    problems.Warn(kConfigFile, std::move(misplaced));
  if (!settings.ok()) return std::nullopt;
  return std::move(settings).value();
}

void CheckAgents(const Home& home, const std::optional<SandboxSettings>& settings,
                 Problems& problems) {
  Result<std::vector<ListedAgent>> agents = ListAgents(home);
  if (!agents.ok()) {
    problems.Fatal("agents", agents.error().text);
    return;
  }
  std::map<std::string, std::string> names;  // agent -> its directory
  for (const ListedAgent& agent : agents.value()) {
    const std::string file = Text("agents/", agent.directory_name, "/agent.toml");
    if (!agent.config.ok()) {
      problems.Fatal(file, agent.config.error().text);
      continue;
    }
    auto [other, is_new] = names.emplace(agent.config->name, agent.directory_name);
    if (!is_new)
      problems.Warn(file, Text("agents/", other->second, " is agent `", agent.config->name,
                               "` as well; the directory of that name is used, else the last"));
    SandboxSettings limits = settings.value_or(DefaultSandboxSettings());
    Status lowered = LowerLimits(agent.config->limits, limits);
    if (settings.has_value() && !lowered.ok()) problems.Fatal(file, lowered.error().text);
  }
}

}  // namespace

std::vector<ConfigProblem> CheckConfiguration(const Home& home, const Environment& environment) {
  Problems problems;
  const std::optional<SandboxSettings> settings = CheckMain(home, environment, problems);
  CheckAgents(home, settings, problems);
  return problems.Take();
}

}  // namespace taskcell::gateway

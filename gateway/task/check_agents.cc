#include "gateway/task/check_agents.h"

#include <string>
#include <utility>

#include "gateway/config/agent_config.h"
#include "gateway/config/table_reader.h"
#include "gateway/config/toml_document.h"
#include "gateway/task/admission.h"
#include "gateway/task/native_root.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr char kConfigFile[] = "config.toml";

// The file an agent's settings were read from, and what it holds.
struct AgentFile {
  std::string path;
  ConfigValue document;
};

AgentFile FileOf(const Home& home, const ListedAgent& agent) {
  std::string resolved = Text("agent_resolved/", agent.config->name, ".toml");
  Result<ConfigValue> preset = ReadToml(*home.files, home.fd.get(), resolved, resolved);
  if (preset.ok()) return {std::move(resolved), std::move(preset).value()};
  std::string own = Text("agents/", agent.directory_name, "/agent.toml");
  Result<ConfigValue> document = ReadToml(*home.files, home.fd.get(), own, own);
  return {std::move(own), document.ok() ? std::move(document).value() : ConfigValue()};
}

// Empty where the key is not there.
std::string Line(const ConfigValue& document, const AgentFault& fault) {
  const ConfigValue* table = document.Find(fault.table);
  const ConfigValue* value = table == nullptr ? nullptr : table->Find(fault.key);
  return value == nullptr ? "" : AtLine(*value);
}

}  // namespace

std::vector<ConfigProblem> CheckAgents(const Home& home, const Environment& environment) {
  std::vector<ConfigProblem> problems;
  Result<ConfigValue> config = ReadConfig(home);
  if (!config.ok()) return problems;
  const Result<SandboxSettings> settings = ReadSandboxSettings(config.value());
  const Result<TaskcellSettings> own = ReadTaskcellSettings(config.value());
  if (!settings.ok() || !own.ok()) return problems;
  if (Result<NativeRoot> root = PinNativeRoot(own.value()); !root.ok())
    problems.push_back(
        {kConfigFile,
         Text(root.error().text, Line(config.value(), {"taskcell", "root", root.error()}))});
  Result<std::vector<ListedAgent>> agents = ListAgents(home);
  if (!agents.ok()) return problems;
  for (const ListedAgent& agent : agents.value()) {
    if (!agent.config.ok()) continue;
    const std::vector<AgentFault> faults =
        FindAgentFaults(settings.value(), own.value(), agent.config.value(), environment);
    if (faults.empty()) continue;
    const AgentFile file = FileOf(home, agent);
    for (const AgentFault& fault : faults)
      problems.push_back({file.path, Text(fault.error.text, Line(file.document, fault))});
  }
  return problems;
}

}  // namespace taskcell::gateway

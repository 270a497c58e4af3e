#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "gateway/config/agent_config.h"
#include "gateway/config/toml_document.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kAgentNotFound = "agent_not_found";
constexpr std::string_view kInvalidConfig = "invalid_config";
constexpr std::string_view kUnmountable = "agent_dir_unmountable";

Error NotFound(std::string_view name) {
  if (name == "default")
    return Error(
               Kind::kConfig,
               "the agent is not registered: no agents/*/agent.toml of this home has [agent] name "
               "= \"default\" or role = \"main\"; name an agent, or give one that role")
        .Coded(kAgentNotFound);
  return Error(Kind::kConfig, Text("the agent is not registered: no agents/*/agent.toml of this "
                                   "home has [agent] name = \"",
                                   Printable(name.substr(0, kMaxAgentNameBytes)), "\""))
      .Coded(kAgentNotFound);
}

// The names below agents/ that can be agents, sorted, so that the same home always gives the same
// answer.
Result<std::vector<std::string>> AgentDirectories(int agents_fd) {
  std::vector<std::string> names;
  for (const sys::DirectoryEntry& entry :
       TRY(sys::ListDirectory(agents_fd, kMaxAgents).With("agents")))
    if (!entry.name.starts_with('_') && !entry.name.starts_with('.')) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

// `shown` is what messages call the file.
Result<AgentConfig> ReadFrom(int dir_fd, const std::string& path, const std::string& shown) {
  Result<ConfigValue> document = ReadToml(dir_fd, path, shown);
  if (!document.ok()) return std::move(document).error().Coded(kInvalidConfig);
  return ReadAgentConfig(document.value());
}

bool Matches(const AgentConfig& config, std::string_view name) {
  return config.name == name || (name == "default" && config.role == "main");
}

Result<UniqueFd> OpenAgentDirectory(int agents_fd, const std::string& name) {
  Result<UniqueFd> directory =
      sys::OpenAt2(agents_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, sys::kResolveBeneath);
  if (directory.ok()) return directory;
  return Error(Kind::kConfig,
               Text("the agent directory cannot be mounted: ", directory.error().text),
               directory.error().err)
      .Coded(kUnmountable);
}

// The file is read through the very descriptor that is the agent's directory from then on: whatever
// is renamed meanwhile, the two belong together.
Result<Agent> OpenAgent(int agents_fd, const std::string& name) {
  UniqueFd directory = TRY(OpenAgentDirectory(agents_fd, name));
  AgentConfig config = TRY(ReadFrom(directory.get(), "agent.toml", Text(name, "/agent.toml")));
  return Agent{std::move(config), name, std::move(directory), {}};
}

// A preset that was bound to the agent replaces its agent.toml.
Status ApplyResolved(const Home& home, AgentConfig& config) {
  std::string path = Text("agent_resolved/", config.name, ".toml");
  Result<AgentConfig> resolved = ReadFrom(home.fd.get(), path, path);
  if (!resolved.ok()) {
    if (resolved.error().err == ENOENT) return Ok();
    return std::move(resolved).error();
  }
  resolved->name = config.name;
  config = std::move(resolved).value();
  return Ok();
}

// <home>/agents; an invalid descriptor where there is none.
Result<UniqueFd> OpenAgents(const Home& home) {
  Result<UniqueFd> agents =
      sys::OpenAt2(home.fd.get(), "agents", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath);
  if (agents.ok()) return agents;
  if (agents.error().err == ENOENT) return UniqueFd();
  return std::move(agents).error().With("agents").Coded(kInvalidConfig);
}

}  // namespace

Result<std::vector<ListedAgent>> ListAgents(const Home& home) {
  std::vector<ListedAgent> listed;
  UniqueFd agents = TRY(OpenAgents(home));
  if (!agents.valid()) return listed;
  for (const std::string& entry : TRY(AgentDirectories(agents.get()))) {
    Result<Agent> agent = OpenAgent(agents.get(), entry);
    if (!agent.ok()) {
      if (agent.error().err != ENOENT) listed.push_back({entry, std::move(agent).error()});
      continue;
    }
    Status resolved = ApplyResolved(home, agent->config);
    if (resolved.ok()) {
      listed.push_back({entry, std::move(agent->config)});
    } else {
      listed.push_back({entry, std::move(resolved).error()});
    }
  }
  return listed;
}

Result<Agent> FindAgent(const Home& home, std::string_view name) {
  if (!IsAgentName(name)) return NotFound(name);
  UniqueFd agents = TRY(OpenAgents(home));
  if (!agents.valid()) return NotFound(name);
  std::optional<Agent> found;
  std::optional<Error> own_error;
  std::vector<std::string> warnings;
  for (const std::string& entry : TRY(AgentDirectories(agents.get()))) {
    Result<Agent> agent = OpenAgent(agents.get(), entry);
    if (!agent.ok()) {
      // Another agent's broken file must not stop this one; but the directory of this very name
      // tells more than "not found".
      if (entry == name && agent.error().err != ENOENT)
        own_error = std::move(agent).error().With(Text("agents/", Printable(entry)));
      continue;
    }
    if (!Matches(agent->config, name)) continue;
    if (found.has_value())
      warnings.push_back(Text("agents/", Printable(found->directory_name), " and agents/",
                              Printable(entry), " both are agent ", name, "; the second is used"));
    found = std::move(agent).value();
  }
  if (!found.has_value()) {
    if (own_error.has_value()) return *std::move(own_error);
    return NotFound(name);
  }
  found->warnings = std::move(warnings);
  TRY(ApplyResolved(home, found->config));
  return *std::move(found);
}

}  // namespace taskcell::gateway

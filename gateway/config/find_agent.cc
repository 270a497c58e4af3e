#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "gateway/config/agent_config.h"
#include "gateway/config/toml_document.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kEphemeral = "eph-";
constexpr char kEphemeralDirectory[] = ".ephemeral";
constexpr std::string_view kAgentNotFound = "agent_not_found";
constexpr std::string_view kInvalidConfig = "invalid_config";
constexpr std::string_view kUnmountable = "agent_dir_unmountable";

// `links` are those below agents/, one of which may have been meant to be the agent.
Error NotFound(std::string_view name, const std::vector<std::string>& links = {}) {
  constexpr std::size_t kMaxNamed = 3;
  std::string text =
      "the agent is not registered: no agents/*/agent.toml of this home has [agent] name = ";
  if (name == "default") {
    text += "\"default\" or role = \"main\"; name an agent, or give one that role";
  } else {
    text += Text('"', Printable(name.substr(0, kMaxAgentNameBytes)), '"');
  }
  for (std::size_t i = 0; i < std::min(links.size(), kMaxNamed); ++i) {
    text +=
        Text(i == 0 ? "; not looked into, since an agent's directory is no symbolic link: " : ", ",
             "agents/", Printable(links[i]));
  }
  if (links.size() > kMaxNamed) text += Text(" and ", links.size() - kMaxNamed, " more");
  return Error(Kind::kConfig, std::move(text)).Coded(kAgentNotFound);
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
Result<AgentConfig> ReadFrom(mounts::FileReader& files, int dir_fd, const std::string& path,
                             const std::string& shown) {
  Result<ConfigValue> document = ReadToml(files, dir_fd, path, shown);
  if (!document.ok()) return std::move(document).error().Coded(kInvalidConfig);
  return ReadAgentConfig(document.value());
}

bool Matches(const AgentConfig& config, std::string_view name) {
  return config.name == name || (name == "default" && config.role == "main");
}

Result<UniqueFd> OpenAgentDirectory(mounts::FileReader& files, int agents_fd,
                                    const std::string& name) {
  Result<UniqueFd> directory = files.OpenDirectory(agents_fd, name);
  if (directory.ok()) return directory;
  return Error(Kind::kConfig,
               Text("the agent directory cannot be mounted: ", directory.error().text),
               directory.error().err)
      .Coded(kUnmountable);
}

// The file is read through the very descriptor that is the agent's directory from then on: whatever
// is renamed meanwhile, the two belong together.
Result<Agent> OpenAgent(mounts::FileReader& files, int agents_fd, const std::string& name) {
  UniqueFd directory = TRY(OpenAgentDirectory(files, agents_fd, name));
  AgentConfig config =
      TRY(ReadFrom(files, directory.get(), "agent.toml", Text(name, "/agent.toml")));
  return Agent{std::move(config), name, std::move(directory), {}};
}

// A preset that was bound to the agent replaces its agent.toml.
Status ApplyResolved(const Home& home, AgentConfig& config) {
  std::string path = Text("agent_resolved/", config.name, ".toml");
  Result<AgentConfig> resolved = ReadFrom(*home.files, home.fd.get(), path, path);
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

// Its directory is known by its name, whatever its file calls it.
Result<Agent> OpenEphemeral(const Home& home, int agents_fd, std::string_view name) {
  Error missing(Kind::kConfig, Text("the agent is not registered: this home has no agents/",
                                    kEphemeralDirectory, "/", Printable(name), "/agent.toml"));
  Result<UniqueFd> all =
      sys::OpenAt2(agents_fd, kEphemeralDirectory, O_RDONLY | O_DIRECTORY, sys::kResolveBeneath);
  if (!all.ok() && all.error().err == ENOENT) return std::move(missing).Coded(kAgentNotFound);
  if (!all.ok()) return std::move(all).error().With("agents").Coded(kUnmountable);
  Result<Agent> agent = OpenAgent(*home.files, all->get(), std::string(name));
  if (!agent.ok() && agent.error().err == ENOENT) return std::move(missing).Coded(kAgentNotFound);
  if (!agent.ok())
    return std::move(agent).error().With(Text("agents/", kEphemeralDirectory, "/", name));
  agent->config.name = name;
  agent->directory_name = Text(kEphemeralDirectory, "/", name);
  return agent;
}

// Looks for the agent in one directory after the other.
class Search {
 public:
  Search(int agents_fd, std::string_view name) : agents_fd_(agents_fd), name_(name) {}

  // True where the agent has a directory of its own name: no other counts then.
  bool IsItself(mounts::FileReader& files, const std::string& entry) {
    Result<Agent> agent = OpenAgent(files, agents_fd_, entry);
    if (agent.ok() && agent->config.name == name_) {
      found_ = std::move(agent).value();
      return true;
    }
    Take(entry, std::move(agent));
    return false;
  }

  // Of several the last wins.
  void LookInto(mounts::FileReader& files, const std::vector<std::string>& entries) {
    overdue_.clear();
    for (const std::string& entry : entries) {
      Result<Agent> agent = OpenAgent(files, agents_fd_, entry);
      if (!agent.ok() && agent.error().err == ETIMEDOUT) overdue_.push_back(entry);
      Take(entry, std::move(agent));
    }
  }

  bool has_found() const { return found_.has_value(); }
  // Those of the last look that took too long.
  const std::vector<std::string>& overdue() const { return overdue_; }

  Result<Agent> Finish() {
    if (found_) {
      found_->warnings = std::move(warnings_);
      return *std::move(found_);
    }
    if (own_error_) return *std::move(own_error_);
    std::sort(links_.begin(), links_.end());
    links_.erase(std::unique(links_.begin(), links_.end()), links_.end());
    return NotFound(name_, links_);
  }

 private:
  // Another agent's broken file must not stop this one; but the directory of this very name tells
  // more than "not found".
  void Take(const std::string& entry, Result<Agent> agent) {
    if (!agent.ok()) {
      if (entry == name_ && agent.error().err != ENOENT)
        own_error_ = std::move(agent).error().With(Text("agents/", Printable(entry)));
      else if (CanBeALink(agent.error()) && IsLink(entry))
        links_.push_back(entry);
      return;
    }
    if (!Matches(agent->config, name_)) return;
    if (found_) {
      warnings_.push_back(Text("agents/", Printable(found_->directory_name), " and agents/",
                               Printable(entry), " both are agent ", name_,
                               "; the second is used"));
    }
    found_ = std::move(agent).value();
  }

  // What took too long is not asked again.
  static bool CanBeALink(const Error& error) {
    return error.code == kUnmountable && (error.err == ELOOP || error.err == ENOTDIR);
  }
  bool IsLink(const std::string& entry) const {
    Result<struct stat> info = sys::StatAt(agents_fd_, entry);
    return info.ok() && S_ISLNK(info->st_mode);
  }

  const int agents_fd_;
  const std::string_view name_;
  std::optional<Agent> found_;
  std::optional<Error> own_error_;
  std::vector<std::string> warnings_;
  std::vector<std::string> overdue_;
  std::vector<std::string> links_;
};

// What another agent's directory does, or who can write it, is to keep nobody's task waiting.
Result<Agent> SearchAgents(const Home& home, int agents_fd, std::string_view name) {
  Search search(agents_fd, name);
  std::vector<std::string> entries = TRY(AgentDirectories(agents_fd));
  if (auto own = std::find(entries.begin(), entries.end(), name); own != entries.end()) {
    if (search.IsItself(*home.files, *own)) return search.Finish();
    entries.erase(own);
  }
  search.LookInto(*home.hasty_files, entries);
  const std::vector<std::string> overdue = search.overdue();
  if (!search.has_found()) search.LookInto(*home.files, overdue);
  return search.Finish();
}

}  // namespace

bool IsEphemeral(std::string_view name) { return name.starts_with(kEphemeral); }

Result<std::vector<ListedAgent>> ListAgents(const Home& home) {
  std::vector<ListedAgent> listed;
  UniqueFd agents = TRY(OpenAgents(home));
  if (!agents.valid()) return listed;
  for (const std::string& entry : TRY(AgentDirectories(agents.get()))) {
    Result<Agent> agent = OpenAgent(*home.files, agents.get(), entry);
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
  Agent agent = TRY(IsEphemeral(name) ? OpenEphemeral(home, agents.get(), name)
                                      : SearchAgents(home, agents.get(), name));
  TRY(ApplyResolved(home, agent.config));
  return agent;
}

}  // namespace taskcell::gateway

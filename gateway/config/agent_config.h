#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/allowed_host.h"
#include "gateway/config/home.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/config/value.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

inline constexpr uint64_t kDefaultTimeoutMs = 1800000;
inline constexpr uint64_t kMaxTimeoutMs = uint64_t{7} * 24 * 3600 * 1000;  // a week
inline constexpr std::size_t kMaxAgents = 4096;  // directories below agents/
inline constexpr std::size_t kMaxAgentNameBytes = 128;
inline constexpr std::size_t kMaxAllowedHosts = 64;

// [taskcell.limits]: what an agent asks to have less of than [container.sandbox] gives.
struct LimitOverrides {
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> pids;
  std::optional<uint64_t> cpu_millis;
  std::optional<uint64_t> max_turns;
};

// agent.toml, as far as a task needs it. Read afresh for every task.
struct AgentConfig {
  std::string name;      // [agent] name: the key
  std::string role;      // "main": the default agent
  std::string provider;  // [runtime] provider as written; empty: the default
  std::string model;     // [model] preferred, trimmed; may be empty
  std::vector<std::string> account_pool;
  bool sandbox_enabled = false;
  bool network_access = false;
  uint64_t timeout_ms = kDefaultTimeoutMs;  // may be 0 as read: refused at admission
  std::vector<std::string> denied_tools;    // sorted, unique; "computer" unless computer_use
  LimitOverrides limits;
  std::vector<AllowedHost> allow_hosts;  // [taskcell] allow_hosts: beside the provider; no other
  bool exports = false;                  // [taskcell] export: files a job leaves outlive its cell
};

// Reads a parsed agent.toml; kConfig with the code invalid_config for a wrong type. Keys that
// belong to the platform are ignored, [taskcell] is strict. Pure.
Result<AgentConfig> ReadAgentConfig(const ConfigValue& document);

// An agent as found in a home.
struct Agent {
  AgentConfig config;
  std::string directory_name;  // below agents/; of an ephemeral agent ".ephemeral/<name>"
  UniqueFd directory;          // pinned; O_RDONLY
  std::vector<std::string> warnings;
};

// Whether `name` is one of an agent that was made for some tasks of another and goes again.
bool IsEphemeral(std::string_view name);

// Finds the agent whose [agent] name is `name` ("default": the one whose role is main) below
// <home>/agents; directories that begin with '_' or '.' are not agents. A directory called `name`
// whose agent it is settles it, and no other is read; else the last one wins, with a warning, and
// one that takes longer than kHastyLimit counts only where no other has the agent. A name that
// begins with "eph-" is an ephemeral agent's: its directory alone, agents/.ephemeral/<name>. Where
// <home>/agent_resolved/<name>.toml exists it replaces agent.toml. Error codes: agent_not_found;
// invalid_config when the directory of that name holds an agent.toml that cannot be used;
// agent_dir_unmountable when the directory is no real directory.
Result<Agent> FindAgent(const Home& home, std::string_view name);

// A directory below agents/, with what its agent.toml (or agent_resolved/) holds or what is wrong
// with it.
struct ListedAgent {
  std::string directory_name;
  Result<AgentConfig> config;
};

// Every agent of a home, sorted by the directories' names; directories without an agent.toml are
// none. Empty for a home without agents/.
Result<std::vector<ListedAgent>> ListAgents(const Home& home);

// Lowers `settings` to what an agent asks for; kConfig with the code invalid_config for a wish
// above what [container.sandbox] gives: an agent may have less, never more. Pure.
Status LowerLimits(const LimitOverrides& wish, SandboxSettings& settings);

// True for names an agent can have: [A-Za-z0-9_-], at most kMaxAgentNameBytes.
bool IsAgentName(std::string_view name);

}  // namespace taskcell::gateway

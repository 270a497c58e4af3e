#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/value.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// [container.sandbox] of config.toml, as the guide describes it. Read afresh for every task.
struct SandboxSettings {
  static constexpr uint64_t kMaxMemoryBytes = uint64_t{64} << 30U;
  static constexpr uint64_t kMaxTmpfsBytes = uint64_t{16} << 30U;
  static constexpr uint64_t kMaxPids = 65536;
  static constexpr uint64_t kMaxCpuMillis = 256000;
  static constexpr uint64_t kMaxTurns = 1000;
  static constexpr std::size_t kMaxNameBytes = 256;  // image and executables

  std::string image;
  // Absolute path inside the cell by family ("claude", "codex", "antigravity", "grok",
  // "openai-compat"); all five are there.
  std::map<std::string, std::string, std::less<>> executables;
  uint64_t memory_bytes = 4294967296;
  uint64_t pids = 128;
  uint64_t cpu_millis = 1000;
  uint64_t tmp_bytes = 268435456;
  uint64_t workspace_bytes = 536870912;
  uint64_t max_turns = 30;
  bool cpu_may_be_missing = false;  // no key of this section: [taskcell] allow_missing
};

// The defaults, for a home without the section.
SandboxSettings DefaultSandboxSettings();

// What is wrong with an image's name; empty: nothing. Pure.
std::string ImageNameFault(std::string_view image);

// Reads the section from a parsed config.toml. An unknown key, a wrong type, a value out of range,
// or tmp_bytes + workspace_bytes above memory_bytes makes the whole section invalid: kConfig with
// the code invalid_config, naming key and rule. Nothing is clamped. Pure.
Result<SandboxSettings> ReadSandboxSettings(const ConfigValue& config);

// The two escape hatches. Each is read on its own, even from a section that is invalid otherwise,
// and is open only for exactly "run_unsandboxed". `warnings` names other unknown values.
struct EscapeHatches {
  bool task = false;    // when_unavailable
  bool script = false;  // script_when_unavailable
  std::vector<std::string> warnings;
};
EscapeHatches ReadEscapeHatches(const ConfigValue& config);

// Names of the section's keys found where they have no effect (under [container] or another table
// of the top level): what people write after a wrong header. One line each.
std::vector<std::string> FindMisplacedKeys(const ConfigValue& config);

}  // namespace taskcell::gateway

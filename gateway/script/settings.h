#pragma once

#include <memory>
#include <optional>
#include <string>

#include "gateway/config/home.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/config/value.h"
#include "gateway/script/refusal.h"
#include "gateway/task/native_root.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// The script sandbox's own limits, whatever the section says of tasks.
inline constexpr uint64_t kScriptMemoryBytes = uint64_t{2} << 30U;
inline constexpr uint64_t kScriptPids = 256;
inline constexpr uint64_t kScriptCpuMillis = 1000;
inline constexpr uint64_t kScriptTmpBytes = uint64_t{64} << 20U;

// What config.toml says of scripts, read afresh for each of them.
struct ScriptSettings {
  SandboxSettings sandbox;  // its image, with the limits above
  TaskcellSettings own;
  NativeRoot root;

  cell::Engine planned_engine() const;  // which engine is asked for, before it is
};

// Error code invalid_config.
Result<ScriptSettings> ReadScriptSettings(const ConfigValue& config);

// An engine that can make a script's cell now, or why there is none.
struct ScriptEngine {
  std::unique_ptr<probe::CellEngine> engine;
  std::optional<Error> stopped;  // the caller asked for the end meanwhile
  std::optional<ScriptRefusal> refusal;
};

// Finds the engine, asks it, looks for the image, and lets a rootless one prove its limits: in this
// order, the first refusal wins.
ScriptEngine FindScriptEngine(const Home& home, const ScriptSettings& settings,
                              Surroundings& surroundings);

}  // namespace taskcell::gateway

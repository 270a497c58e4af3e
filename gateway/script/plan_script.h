#pragma once

#include <string>

#include "gateway/config/home.h"
#include "gateway/script/script.h"
#include "gateway/script/settings.h"
#include "gateway/task/run_directory.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/job.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// A script on disk: in a directory of its own below the run directory.
struct StoredScript {
  RunDirectory run;
  UniqueFd directory;  // pins it
  std::string path;    // of the directory, canonical
};
// Error code workspace_failed; nothing is left after one.
Result<StoredScript> StoreScript(const Home& home, const std::string& run_id,
                                 const ScriptRequest& request);

// The cell of a script: its directory read-only at /workspace, a /tmp where nothing can be
// executed, no network, the script sandbox's own limits.
Result<cell::CellPlan> PlanScriptCell(const Home& home, const std::string& run_id,
                                      const ScriptRequest& request, const ScriptSettings& settings,
                                      cell::Engine engine, const probe::CellIds& ids,
                                      const StoredScript& script);

// Whether a native cell finds the language's interpreter where a script's cell looks.
bool HasInterpreter(const NativeRoot& root, ScriptLanguage language);

// What runs in that cell.
cell::Job PlanScriptJob(const ScriptRequest& request);

// What runs on the host: the file at `script`, with PATH, HOME and LANG of `environment` and
// nothing else of it.
cell::Job PlanHostScriptJob(const ScriptRequest& request, const std::string& script,
                            const Environment& environment);

}  // namespace taskcell::gateway

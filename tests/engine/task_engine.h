#pragma once

#include <string_view>

namespace taskcell::test {

// The engine of this program's cells, "docker" or "native": by which task_engine_*.cc is linked
// into it, so that all other sources are compiled once for both.
extern const std::string_view kTaskEngine;

inline bool OnDocker() { return kTaskEngine == "docker"; }

}  // namespace taskcell::test

#pragma once

#include <string>

#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"
#include "probe/cells/cell_engine.h"

namespace taskcell::gateway {

// Where an engine refused to create or start a container for one of its limits, in its own words
// ("Range of CPUs is from 0.01 to 2.00", "Minimum memory limit allowed is 6MB"): the same error,
// which begins with the key of config.toml that sets the limit, and its value. Every other error is
// returned as it is. Its code stays: what the engine says decides nothing.
Error NameRefusedLimit(Error error, const cell::Limits& limits);

// The error of an engine that has no such image, with the guide's remedy put before its text; any
// other unchanged.
Error NameMissingImage(Error error, const std::string& image);

// The error of a cell's making by all of these names, and where a container runs but nobody came to
// its gate, so that the engine and this process do not share sockets, as docker_unreachable with
// that cause and the engine's name (our own launcher's is left).
Error NameEngineFault(Error error, const probe::CellEngine& engine, const cell::Limits& limits,
                      const std::string& image);

}  // namespace taskcell::gateway

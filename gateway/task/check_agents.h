#pragma once

#include <vector>

#include "gateway/config/check_configuration.h"
#include "gateway/config/environment.h"
#include "gateway/config/home.h"

namespace taskcell::gateway {

// What tasks would be refused for by their configuration alone, beside what CheckConfiguration
// finds: what only admission looks at, for each agent as its tasks meet it (in a cell, or on the
// host where its switch is off), and a [taskcell] root that is no directory. Nothing where the
// sections of config.toml cannot be read. Changes nothing, asks no engine and no provider.
std::vector<ConfigProblem> CheckAgents(const Home& home, const Environment& environment);

}  // namespace taskcell::gateway

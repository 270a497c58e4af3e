#pragma once

#include <string>
#include <vector>

#include "gateway/config/environment.h"
#include "gateway/config/home.h"

namespace taskcell::gateway {

// Something in a home's configuration that a task would be refused for, or that has another effect
// than its author may think.
struct ConfigProblem {
  std::string file;   // below the home: "config.toml", "agents/scout/agent.toml"
  std::string text;   // key, line, rule and remedy
  bool fatal = true;  // false: nothing is refused for it
};

// Checks everything that tasks of this home read, each file and section by itself, so that one
// fault does not hide another's: config.toml (the sandbox's section, taskcell's own, accounts),
// then every agent.toml, in the order of their names. Changes nothing, asks no engine and no
// provider.
std::vector<ConfigProblem> CheckConfiguration(const Home& home, const Environment& environment);

}  // namespace taskcell::gateway

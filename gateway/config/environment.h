#pragma once

#include <map>
#include <string>
#include <string_view>

namespace taskcell::gateway {

// The environment of the gateway as a plain value, so that everything that depends on it can be
// tested. An empty value counts as unset everywhere.
using Environment = std::map<std::string, std::string, std::less<>>;

// Copies the environment of this process.
Environment ProcessEnvironment();

// The value of `name`, or "" when unset.
std::string_view Lookup(const Environment& environment, std::string_view name);

}  // namespace taskcell::gateway

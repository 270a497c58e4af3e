#pragma once

#include <optional>
#include <string>

#include "gateway/task/verdict.h"

namespace taskcell::gateway {

// The message of invalid_config for a program that does not know an option or a setting it is
// started with: an older one than taskcell knows, or another. It says so on its standard error and
// ends with a status other than 0; that counts only where nothing was asked of the provider yet, as
// no tool could have said it then. nullopt for every other run. Pure.
std::optional<std::string> WhyTooOld(const Evidence& evidence);

}  // namespace taskcell::gateway

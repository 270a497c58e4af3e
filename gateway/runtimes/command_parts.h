#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::gateway {

// Parts of command lines that are the same in a cell and on the host.

// Refuses (kConfig, invalid_config) a model that is empty, option-like or too long, or holds a byte
// no model name has.
Status CheckModelName(const std::string& model);

// The names with commas between them.
std::string Joined(std::span<const std::string_view> names);

// The same, sorted, of names that somebody configured; what could be taken for an option or for two
// entries is left out, as the platform does.
std::string ToolList(const std::vector<std::string>& names);

// Settings that make codex ask a provider at `base_url` with the key in OPENAI_API_KEY. The
// built-in provider cannot be redirected: codex talks to it over a web socket that knows no base
// URL.
void AddCodexProvider(std::string_view base_url, std::vector<std::string>& argv);

// What antigravity is started with, and the line of standard input it takes its prompt from.
std::vector<std::string> AntigravityCommand(std::string_view executable, std::string_view model);
std::string AntigravityInput(std::string_view prompt);

}  // namespace taskcell::gateway

#pragma once

#include <string>
#include <string_view>

#include "launcher/base/json_value.h"

namespace taskcell::gateway::loop {

inline constexpr std::size_t kMaxToolOutputBytes = 64U << 10U;
inline constexpr int kShellTimeoutMs = 30'000;
inline constexpr std::size_t kMaxListedEntries = 10'000;

// The four tools, as the request's "tools".
extern const std::string_view kToolDefinitions;

struct ToolResult {
  std::string text;  // at most kMaxToolOutputBytes and a note where it was cut
  bool is_error = false;
};

// Does one call. `arguments` is the text of a JSON object; empty stands for one without members. An
// unknown tool, malformed arguments and a failure are results with is_error. There is no boundary
// here: what a tool may reach is the cell's business.
ToolResult RunTool(std::string_view name, std::string_view arguments);

}  // namespace taskcell::gateway::loop

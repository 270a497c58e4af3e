#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gateway/script/script.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// The Model Context Protocol's messages, a line of JSON each, as far as a server of one tool needs
// them: execute_program {code, language, timeout_seconds}.
inline constexpr char kMcpTool[] = "execute_program";
inline constexpr std::size_t kMaxMcpLineBytes = 32U << 20U;  // a script whose every byte is escaped

// What a client's line asks for; at most one of these, and none where nothing is to be done.
struct McpStep {
  std::string reply;                    // a line (without its newline) to be answered at once
  std::optional<ScriptRequest> script;  // to be run, and answered under `id`
  std::string id;                       // of the script's call, or of the call to be cancelled
  bool cancels = false;
};

// Never fails: what makes no sense is answered as the protocol has it. `base` is the request a call
// changes: its home and agent. Pure.
McpStep ReadMcpLine(std::string_view line, const ScriptRequest& base);

// The answer to the call `id`: a script that exited with 0 is its standard output, any other an
// error whose text says so. Pure.
std::string McpResult(std::string_view id, const ScriptAnswer& answer);
// The answer to a call that was not begun. Pure.
std::string McpToolError(std::string_view id, std::string_view text);

}  // namespace taskcell::gateway

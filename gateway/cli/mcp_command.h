#pragma once

#include <string>

namespace taskcell::gateway {

// `taskcell mcp`: serves the Model Context Protocol on standard input and output until the client
// closes them, or SIGTERM. Scripts run beside each other, at most kMaxMcpCalls at once; all are
// ended and gone before it returns. The exit status: 0; 2 no such home, or a wrong agent.
inline constexpr std::size_t kMaxMcpCalls = 4;
int McpCommand(const std::string& home_option, const std::string& agent_option);

}  // namespace taskcell::gateway

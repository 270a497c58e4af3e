#pragma once

#include <string>
#include <string_view>

namespace taskcell::gateway::loop {

// The answer of antigravity's PreToolUse hook, one JSON object, to `call`, what the program tells
// it of a tool: {"toolCall": {"name": NAME, ...}, ...}. Allows the file and shell tools of a cell
// (kAntigravityTools) and denies every other, and whatever it cannot read. The program then goes on
// without the tool, and its stream says who refused it. No boundary: what runs in the cell can
// change the hook, and the gateway stops a task whose stream has a forbidden tool.
std::string GuardAnswer(std::string_view call);

}  // namespace taskcell::gateway::loop

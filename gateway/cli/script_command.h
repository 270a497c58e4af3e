#pragma once

#include <cstdint>
#include <string>

#include "gateway/script/script.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// What the command line of `taskcell script` says.
struct ScriptOptions {
  std::string home;      // --home; empty: as the environment says
  std::string agent;     // --agent; empty: as the environment says
  std::string language;  // --language
  std::string file;      // the script's, or "-" for standard input
  std::string input;     // --stdin: a file, "-" for standard input, empty: nothing
  uint64_t timeout_seconds = kDefaultScriptSeconds;
  bool poc = false;
  bool json = false;
};

// Runs the script in this process, relays its output once it has ended, or prints one JSON object,
// and returns the exit status (ScriptExitStatus; 2 for what no script can be). With `poc` prints
// the evidence of RunPoc; 0 where that is a transcript, else 125.
int ScriptCommand(const ScriptOptions& options);

// A request that names home and agent alone. The agent is `agent_option`, else what
// DUDUCLAW_AGENT_ID says, else "default".
Result<ScriptRequest> BaseRequest(const std::string& home_option, const std::string& agent_option);

// The whole request, with the bytes of its files; a proof of concept has kPocTimeoutMs.
Result<ScriptRequest> RequestOf(const ScriptOptions& options);

}  // namespace taskcell::gateway

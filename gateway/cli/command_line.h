#pragma once

#include <cstdint>
#include <string>

#include "gateway/cli/run_command.h"

namespace taskcell::gateway {

// What a command line asks for.
struct CommandLine {
  enum class What : uint8_t {
    kRun,
    kConfigCheck,
    kDoctor,
    kPs,
    kShow,
    kSweep,
    kTeamGate,
    kSubmit,
    kCancel,
    kLogs,
    kAccounts,
    kPrint,   // `text`: what --help and --version say
    kRefuse,  // `text`: what is wrong with it
  };
  What what = What::kRefuse;
  RunOptions options;
  bool all = false;                // kPs
  std::string task;                // kShow, kCancel, kLogs
  bool dry_run = false;            // kSweep
  std::string team_gate = "auto";  // kTeamGate
  std::string text;
};

// Pure. A word that begins with '-' is an option or wrong, never a prompt, unless it stands behind
// "--"; help that is asked for beside an agent is wrong too: a script would take it for the reply.
CommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace taskcell::gateway

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/cli/run_command.h"
#include "gateway/cli/script_command.h"

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
    kScript,
    kMcp,
    kAuditVerify,
    kImageCheck,
    kImagePull,
    kShell,
    kPrint,   // `text`: what --help and --version say
    kRefuse,  // `text`: what is wrong with it
  };
  What what = What::kRefuse;
  RunOptions options;
  ScriptOptions script;              // kScript
  bool all = false;                  // kPs
  std::string image;                 // kImageCheck, kImagePull; empty: the configured one
  std::string task;                  // kShow, kCancel, kLogs
  bool dry_run = false;              // kSweep
  bool hostile = false;              // kDoctor
  std::vector<std::string> attacks;  // kDoctor, with `hostile`: payloads or topics; empty: all
  std::string team_gate = "auto";    // kTeamGate
  std::string text;
};

// Pure. A word that begins with '-' is an option or wrong, never a prompt, unless it stands behind
// "--"; help that is asked for beside an agent is wrong too: a script would take it for the reply.
CommandLine ParseCommandLine(int argc, const char* const* argv);

}  // namespace taskcell::gateway

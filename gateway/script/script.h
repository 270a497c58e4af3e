#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/script/language.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

inline constexpr std::size_t kMaxScriptBytes = 4U << 20U;
inline constexpr std::size_t kMaxScriptInputBytes = 4U << 20U;
inline constexpr uint64_t kDefaultScriptSeconds = 30;
inline constexpr uint64_t kMaxScriptSeconds = 300;
inline constexpr int kTimedOutExit = 124;

// What somebody wants run.
struct ScriptRequest {
  std::string home;   // as ChooseHome gave it
  std::string agent;  // on whose behalf, for the audit log
  ScriptLanguage language = ScriptLanguage::kPython;
  std::string code;   // any bytes
  std::string input;  // what it reads on standard input
  uint64_t timeout_ms = kDefaultScriptSeconds * 1000;
};

// What became of it.
struct ScriptAnswer {
  // "ok": it ran to an end, its own or its time limit's; or why not: a ScriptRefusal's code,
  // invalid_script, output_overflow, result_incomplete, transport_failed, workspace_failed,
  // stopped.
  std::string code = "ok";
  std::string message;  // why not, with the remedy
  std::string why;      // of a refusal, without its frame
  std::string remedy;   // of a refusal, with what the message's fixed words leave out
  std::string out;      // valid UTF-8, at most kMaxKeptOutput and its mark; so is `err`
  std::string err;
  int exit_code = 0;  // 128 + n for signal n; kTimedOutExit when its time was over
  uint64_t execution_ms = 0;
  bool truncated = false;
  bool timed_out = false;
  bool ran_on_host = false;
  std::string engine;          // of its cell; empty: none was made
  bool verified = false;       // that cell was attested and is what was planned
  std::string uid_separation;  // of the cell, as in a receipt
  std::vector<std::string> warnings;

  bool ok() const { return code == "ok"; }
};

// Runs a script in a cell of its own, without a network, and always answers. Whatever the answer,
// nothing of it is left but its audit events and what the warnings name.
//
// Where the sandbox cannot run it ([container.sandbox] script_when_unavailable), that is audited
// and the script is not run; or, with "run_unsandboxed", it runs on the host, each time audited:
// not once its own cell stood at its gate, nor for root, nor where the events cannot be written.
ScriptAnswer RunScript(const ScriptRequest& request, Surroundings& surroundings);

// The same in a cell or not at all: no hatch, no events. What a security audit tries out.
ScriptAnswer RunScriptInCell(const ScriptRequest& request, Surroundings& surroundings);

// "Program exited with code <n>\n--- stdout ---\n...\n--- stderr ---\n...".
std::string FailureText(const ScriptAnswer& answer);

// The answer as one JSON object.
std::string ScriptAnswerJson(const ScriptAnswer& answer);

// The exit status of `taskcell script`: the script's own; 124 its time was over; 125 it was not
// run, or not to its end; 130 stopped.
int ScriptExitStatus(const ScriptAnswer& answer);

}  // namespace taskcell::gateway

#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/task/answer.h"

namespace taskcell::casedriver {

struct Arguments {
  std::map<std::string, std::string, std::less<>> options;
  std::vector<std::string> rest;
  bool json = false;

  std::string_view Get(std::string_view name) const {
    auto at = options.find(name);
    return at == options.end() ? std::string_view() : std::string_view(at->second);
  }
};

// Says on standard error what is wrong with the command line; the exit status for that.
int Complain(std::string_view what);
// Prints the answer, as `taskcell run --json` does or as one line; the exit status.
int PrintAnswer(const gateway::TaskAnswer& answer, bool json);

// Each verb prints its answer on standard output and returns the exit status: 0 when the answer is
// good news, 1 otherwise, 2 for a wrong command line.

// --config F: {code, message, warnings, effective}.
int ConfigCheck(const Arguments& arguments);
// --config F --agent A | --agent-config F [--prompt TEXT]: the answer of `taskcell run --json`. The
// home is the directory of the file; where F is not called config.toml, a temporary copy of that
// directory.
int RunTaskVerb(const Arguments& arguments);
// {engine: {endpoint, error, reachable}}.
int Doctor(const Arguments& arguments);
// --runtime R --cli-exit N [--max-turns N], the program's output on standard input: {outcome,
// reply, step_limit, ...}.
int Parse(const Arguments& arguments);
// --timeout-ms N [--runtime R] [--argument-file F] -- ARGV: runs a stand-in for an AI program the
// way a task's program is run, in a verified native cell, with its output read and its end judged
// by the same code; the answer is that of `taskcell run --json`. The working directory is seen in
// the cell at its own path, read-only, and is the program's, too; the content of F is one more
// argument. What comes on standard input is the program's, where it ends soon. No provider is
// behind it, so its own word counts as if one had answered once.
int RunCli(const Arguments& arguments);
// Evidence of a run as one JSON object on standard input: the same answer. All members are
// optional:
//   runtime, account, max_turns, timeout_ms
//   stdout, stderr: what the program printed
//   end: "exited" (default), "refused", "gate_closed" or "overdue"
//   exit, signal; reason: "exited" (default), "deadline" or "cancelled"; refusal: {stage, text}
//   cancelled, deadline_passed, over_steps; transport_error
//   oom_kills, pids_refusals; events: false where they are unknown
//   egress: the totals of a receipt's record; without it one model call was answered
int ClassifyExit();
// ID: {clean, error}.
int RemoveContainer(const Arguments& arguments);
int SweepVerb(const Arguments& arguments);

}  // namespace taskcell::casedriver

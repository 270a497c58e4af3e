#pragma once

#include <string>

#include "gateway/task/answer.h"

namespace taskcell::gateway {

// What the command line of `taskcell run` says.
struct RunOptions {
  std::string agent;
  std::string prompt;  // the text, or "-" for standard input
  std::string home;    // --home; empty: as the environment says
  std::string path;    // what asks for it, a TaskKind; empty: a person, as the bus does
  std::string role;    // of a team, that a goal round asks for
  bool require_cell = false;
  bool json = false;
};

// Runs the task, prints the answer and returns the exit status. Standard output gets the reply
// only, or one JSON object; what a person should know goes to standard error.
int RunCommand(const RunOptions& options);

// The answer as one JSON object.
std::string AnswerJson(const TaskAnswer& answer);

}  // namespace taskcell::gateway

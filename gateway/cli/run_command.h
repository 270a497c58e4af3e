#pragma once

#include <string>

#include "gateway/task/answer.h"

namespace taskcell::gateway {

// What the command line of `taskcell run` says.
struct RunOptions {
  std::string agent;
  std::string prompt;  // the text, or "-" for standard input
  std::string home;    // --home; empty: as the environment says
  bool json = false;
};

// Runs the task, prints the answer and returns the exit status. Standard output gets the reply
// only, or one JSON object; what a person should know goes to standard error.
int RunCommand(const RunOptions& options);

// The answer as one JSON object.
std::string AnswerJson(const TaskAnswer& answer);

}  // namespace taskcell::gateway

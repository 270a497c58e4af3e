#pragma once

#include <string>
#include <vector>

namespace taskcell::gateway {

// What the command lines of `taskcell run` and `taskcell submit` say.
struct RunOptions {
  std::string agent;
  std::string prompt;  // the text, or "-" for standard input
  std::string home;    // --home; empty: as the environment says
  std::string path;    // what asks for it, a TaskKind; empty: a person, as the bus does
  std::string role;    // of a team, that a goal round asks for
  bool require_cell = false;
  std::vector<std::string> inputs;  // run: what the cell sees at /input
  bool wait = false;                // submit
  bool json = false;
};

// Runs the task, by the gateway of the home where there is one, else in this process; prints the
// answer and returns the exit status. Standard output gets the reply only, or one JSON object; what
// a person should know goes to standard error.
int RunCommand(const RunOptions& options);

// Hands the task to the gateway of the home and prints its id; with `wait` its answer as RunCommand
// does. Returns the exit status: 0, 4 when no gateway serves the home, others as ExitStatus.
int SubmitCommand(const RunOptions& options);

}  // namespace taskcell::gateway

// taskcell: the command line client.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "gateway/cli/run_command.h"

namespace {

int Main(int argc, char** argv) {
  constexpr int kUsage = 2;
  CLI::App app{"Runs an AI agent's task in a verified, locked-down cell.", "taskcell"};
  app.set_version_flag("--version", "taskcell " TASKCELL_VERSION);
  app.require_subcommand(1);

  taskcell::gateway::RunOptions options;
  options.prompt = "-";
  CLI::App* run = app.add_subcommand("run", "Run one task of an agent and print its reply");
  run->add_option("AGENT", options.agent, "The agent's [agent] name, or default")->required();
  run->add_option("PROMPT", options.prompt, "The task; - or nothing: standard input");
  run->add_option("--home", options.home,
                  "The home directory (else $TASKCELL_HOME, $DUDUCLAW_HOME, ~/.taskcell, "
                  "~/.duduclaw)");
  run->add_flag("--json", options.json, "Print reply, code and receipt as one JSON object");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return taskcell::gateway::RunCommand(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "taskcell: %s\n", error.what());  // ignoring: nobody is left to tell
    return 1;
  }
}

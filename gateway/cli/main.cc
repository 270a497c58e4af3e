// taskcell: the command line client.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "gateway/cli/config_command.h"
#include "gateway/cli/doctor_command.h"
#include "gateway/cli/run_command.h"
#include "gateway/cli/sweep_command.h"
#include "gateway/cli/tasks_command.h"

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
  constexpr char kHomeHelp[] =
      "The home directory (else $TASKCELL_HOME, $DUDUCLAW_HOME, ~/.taskcell, ~/.duduclaw)";
  run->add_option("--home", options.home, kHomeHelp);
  run->add_flag("--json", options.json, "Print reply, code and receipt as one JSON object");

  CLI::App* config = app.add_subcommand("config", "Look at a home's configuration");
  config->require_subcommand(1);
  CLI::App* check = config->add_subcommand("check", "Say what is wrong with it: file, line, key");
  check->add_option("--home", options.home, kHomeHelp);
  check->add_flag("--json", options.json, "Print one JSON object");

  bool all = false;
  CLI::App* ps = app.add_subcommand("ps", "List the newest tasks of a home");
  ps->add_flag("--all", all, "Every task that is on record");
  std::string task;
  CLI::App* show = app.add_subcommand("show", "Show one task, its cells and what became of it");
  show->add_option("ID", task, "The task's id, or the beginning of it")->required();
  bool dry_run = false;
  CLI::App* sweep = app.add_subcommand("sweep", "Remove what killed runs left behind");
  sweep->add_flag("--dry-run", dry_run, "Say what would be removed, and change nothing");
  CLI::App* doctor = app.add_subcommand("doctor", "Say whether the agents' tasks would run now");
  for (CLI::App* command : {ps, show, sweep, doctor}) {
    command->add_option("--home", options.home, kHomeHelp);
    command->add_flag("--json", options.json, "Print JSON");
  }

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  if (check->parsed()) return taskcell::gateway::ConfigCheckCommand(options.home, options.json);
  if (doctor->parsed()) return taskcell::gateway::DoctorCommand(options.home, options.json);
  if (ps->parsed()) return taskcell::gateway::PsCommand(options.home, all, options.json);
  if (show->parsed()) return taskcell::gateway::ShowCommand(options.home, task, options.json);
  if (sweep->parsed()) return taskcell::gateway::SweepCommand(options.home, dry_run, options.json);
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

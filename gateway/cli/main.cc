// taskcell: the command line client.
#include <exception>

#include "gateway/cli/command_line.h"
#include "gateway/cli/config_command.h"
#include "gateway/cli/doctor_command.h"
#include "gateway/cli/output.h"
#include "gateway/cli/queue_command.h"
#include "gateway/cli/run_command.h"
#include "gateway/cli/sweep_command.h"
#include "gateway/cli/tasks_command.h"
#include "gateway/cli/team_gate_command.h"
#include "launcher/sys/self.h"

namespace {

namespace gateway = taskcell::gateway;

int Main(int argc, char** argv) {
  constexpr int kUsage = 2;
  const gateway::CommandLine line = gateway::ParseCommandLine(argc, argv);
  const gateway::RunOptions& options = line.options;
  switch (line.what) {
    case gateway::CommandLine::What::kPrint:
      return gateway::PrintOutput(line.text) ? 0 : 1;
    case gateway::CommandLine::What::kRefuse:
      gateway::Tell(line.text);
      return kUsage;
    case gateway::CommandLine::What::kConfigCheck:
      return gateway::ConfigCheckCommand(options.home, options.json);
    case gateway::CommandLine::What::kDoctor:
      return gateway::DoctorCommand(options.home, options.json);
    case gateway::CommandLine::What::kPs:
      return gateway::PsCommand(options.home, line.all, options.json);
    case gateway::CommandLine::What::kShow:
      return gateway::ShowCommand(options.home, line.task, options.json);
    case gateway::CommandLine::What::kSweep:
      return gateway::SweepCommand(options.home, line.dry_run, options.json);
    case gateway::CommandLine::What::kTeamGate:
      return gateway::TeamGateCommand(options.home, options.agent, line.team_gate, options.json);
    case gateway::CommandLine::What::kSubmit:
      return gateway::SubmitCommand(options);
    case gateway::CommandLine::What::kCancel:
      return gateway::CancelCommand(options.home, line.task, options.json);
    case gateway::CommandLine::What::kLogs:
      return gateway::LogsCommand(options.home, line.task, options.json);
    case gateway::CommandLine::What::kAccounts:
      return gateway::AccountsCommand(options.home, options.json);
    case gateway::CommandLine::What::kRun:
      break;
  }
  return gateway::RunCommand(options);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kUsage = 2;
  taskcell::Status streams = taskcell::sys::PrepareStreams();
  if (!streams.ok()) {
    gateway::Tell(streams.error().text);
    return kUsage;
  }
  // Descriptors of ours, up to what nobody here could raise.
  (void)taskcell::sys::RaiseResourceLimit(RLIMIT_NOFILE);  // ignoring: then the soft one holds
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {
    gateway::Tell(error.what());
    return 1;
  }
}

// taskcell: the command line client.
#include <exception>

#include "gateway/cli/audit_command.h"
#include "gateway/cli/command_line.h"
#include "gateway/cli/config_command.h"
#include "gateway/cli/doctor_command.h"
#include "gateway/cli/hostile_command.h"
#include "gateway/cli/image_command.h"
#include "gateway/cli/mcp_command.h"
#include "gateway/cli/output.h"
#include "gateway/cli/queue_command.h"
#include "gateway/cli/run_command.h"
#include "gateway/cli/script_command.h"
#include "gateway/cli/shell_command.h"
#include "gateway/cli/sweep_command.h"
#include "gateway/cli/tasks_command.h"
#include "gateway/cli/team_gate_command.h"
#include "gateway/config/wiping_heap.h"
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
      return line.hostile ? gateway::HostileCommand(options.home, line.attacks, options.json)
                          : gateway::DoctorCommand(options.home, options.json);
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
    case gateway::CommandLine::What::kScript:
      return gateway::ScriptCommand(line.script);
    case gateway::CommandLine::What::kMcp:
      return gateway::McpCommand(options.home, options.agent);
    case gateway::CommandLine::What::kAuditVerify:
      return gateway::AuditVerifyCommand(options.home, options.json);
    case gateway::CommandLine::What::kImageCheck:
      return gateway::ImageCheckCommand(options.home, line.image, options.json);
    case gateway::CommandLine::What::kImagePull:
      return gateway::ImagePullCommand(options.home, line.image, options.json);
    case gateway::CommandLine::What::kShell:
      return gateway::ShellCommand(options.home, options.agent);
    case gateway::CommandLine::What::kRun:
      break;
  }
  return gateway::RunCommand(options);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kUsage = 2;
  gateway::WipeWhatOpensslFrees();
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

#include "launcher/native/command.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>

#include <cerrno>
#include <initializer_list>
#include <optional>
#include <string>

#include "launcher/base/text.h"
#include "launcher/native/agent_snapshot.h"
#include "launcher/native/cell.h"
#include "launcher/native/gate_client.h"
#include "launcher/native/init_program.h"
#include "launcher/native/message.h"
#include "launcher/native/report.h"
#include "launcher/native/request.h"
#include "launcher/native/supervisor.h"
#include "launcher/native/terminal.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {
namespace {

constexpr std::initializer_list<int> kPassedSignals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};

struct Finished {
  cell::CellPlan plan;
  Outcome outcome;
  CellFacts facts;
};

std::string TermOfCaller() {
  const char* term = ::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): one thread
  return term == nullptr ? "" : term;
}

Result<Finished> Launch(const LaunchRequest& request, const Options& options,
                        const sys::CaughtSignals& signals) {
  UniqueFd init = TRY(OpenInitProgram());
  sys::SocketPair gate = TRY(sys::MakePacketPair());
  CellOrders orders;
  orders.plan = &request.plan;
  orders.user_namespace = options.user_namespace;
  orders.init = init.get();
  orders.gate = std::move(gate.second);
  orders.signal_mask = &signals.mask_before;
  orders.stdio = request.job.stdio;
  Terminal terminal;  // before the cell: given back when nothing of the cell runs any more
  NativeCell cell = TRY(NativeCell::Make(std::move(orders)));
  // Not earlier: the child could not open its own id maps. From here on no other process of this
  // uid can look into the launcher.
  TRY(sys::SetNotDumpable());
  GateClient client(std::move(gate.first));
  TRY(VerifyCell(request.plan, cell, client));
  Finished finished;
  finished.plan = request.plan;
  cell::Job job = request.job;
  job.foreground = terminal.is_ours();
  job.ignored_signals = signals.ignored;
  job.timeout_ms = options.timeout_ms;  // should the stop key stop this process
  finished.outcome = TRY(Supervise(cell, client, job, signals.fd.get(), options.timeout_ms));
  finished.facts = {cell.outside().way, cell.proc_is_subset()};
  TRY(cell.cgroup().Remove());
  return finished;
}

// What to say about a program that did not start.
std::string RefusalText(const cell::Refusal& refusal, const std::string& program) {
  std::string text = Text("'", Printable(program), "': ", Printable(refusal.text));
  if (refusal.err == E2BIG) {
    text +=
        " (one argument or variable may have at most 131071 bytes, 128 KiB with its end mark, and "
        "all together a quarter of the stack limit: give long text by standard input or a file)";
  }
  return text;
}

Result<Finished> Prepare(const Options& options) {
  sys::CaughtSignals signals = TRY(sys::CatchSignals(kPassedSignals));
  std::string run_id = TRY(MakeRunId());
  LaunchRequest request = TRY(MakeRequest(options, run_id, TermOfCaller()));
  std::optional<AgentSnapshot> snapshot;
  if (!options.agent_directory.empty()) {
    snapshot.emplace(TRY(AgentSnapshot::Make(options.agent_directory, run_id)));
    for (const std::string& warning : snapshot->warnings()) PrintMessage("warning: " + warning);
    TRY(snapshot->AddTo(request));
    TRY(cell::CheckPlan(request.plan));
  }
  return Launch(request, options, signals);
}

}  // namespace

int RunCommand(const Options& options) {
  std::string report_option = Text("--report '", Printable(options.report), "': ");
  UniqueFd report;
  if (!options.report.empty()) {
    Result<UniqueFd> opened = OpenReport(options.report);
    if (!opened.ok()) {
      PrintMessage(report_option + opened.error().text);
      return kExitFailed;
    }
    report = std::move(opened).value();
  }
  Result<Finished> finished = Prepare(options);
  std::string text;
  int status = kExitFailed;
  if (finished.ok()) {
    const Outcome& outcome = finished->outcome;
    if (outcome.refusal) PrintMessage(RefusalText(*outcome.refusal, options.command[0]));
    status = ExitStatus(outcome);
    text = ReportOutcome(finished->plan, finished->facts, outcome);
  } else {
    PrintMessage(finished.error());
    text = ReportError(finished.error());
  }
  if (!report.valid()) return status;
  Status written = sys::WriteAll(report.get(), text);
  if (written.ok()) return status;
  PrintMessage(Text(report_option, written.error().text, "; the status without it is ", status));
  return kExitFailed;
}

}  // namespace taskcell::native

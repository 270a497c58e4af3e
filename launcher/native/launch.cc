#include "launcher/native/launch.h"

#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <climits>
#include <initializer_list>
#include <optional>
#include <string>

#include "launcher/base/text.h"
#include "launcher/native/agent_snapshot.h"
#include "launcher/native/cell.h"
#include "launcher/native/data_files.h"
#include "launcher/native/free_ids.h"
#include "launcher/native/gate_client.h"
#include "launcher/native/message.h"
#include "launcher/native/own_filter.h"
#include "launcher/native/own_program.h"
#include "launcher/native/request.h"
#include "launcher/native/streams.h"
#include "launcher/native/terminal.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {
namespace {

// SIGALRM: the time of --timeout is up before there is a program.
constexpr std::initializer_list<int> kPassedSignals = {SIGTERM, SIGINT,  SIGHUP, SIGQUIT,
                                                       SIGUSR1, SIGUSR2, SIGALRM};
constexpr std::initializer_list<int> kSignalsAtTerminal = {SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
                                                           SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};

std::string TermOfCaller() {
  const char* term = ::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): one thread
  return term == nullptr ? "" : term;
}

// Whose keys a job that can ask for keys would get.
Status CheckKeyring(const NativeCell& cell, const std::vector<std::string>& left_open) {
  if (!cell.keyring_stays()) return Ok();
  for (const char* call : {"keyctl", "add_key", "request_key"}) {
    if (std::find(left_open.begin(), left_open.end(), call) == left_open.end()) continue;
    return Error(
        Kind::kUnsupported,
        Text("--seccomp leaves ", call,
             " open, and no session keyring of the cell's own can be had: this user has as "
             "many keys as it may (the sysctl kernel.keys.maxkeys), or keyctl is forbidden "
             "here. Deny it in the profile, or have the limit raised"));
  }
  return Ok();
}

// How long what --file names may take to come to its end where no --timeout says.
constexpr int kFilesTimeoutMs = 60'000;

int FilesTimeoutMs(uint64_t timeout_ms) {
  if (timeout_ms == 0) return kFilesTimeoutMs;
  return static_cast<int>(std::min<uint64_t>(timeout_ms, INT_MAX));
}

// What the caller sends.
struct Signals {
  sys::CaughtSignals caught;  // all, to be taken from
  UniqueFd only_ending;       // at a terminal, where others come as well

  // Readable while one that ends the launch waits.
  int ending() const { return only_ending.valid() ? only_ending.get() : caught.fd.get(); }
};

Result<Signals> CatchAll(bool terminal) {
  Signals signals;
  signals.caught = TRY(sys::CatchSignals(kPassedSignals));
  if (!terminal) return signals;
  signals.only_ending = std::move(signals.caught.fd);
  signals.caught.fd = std::move(TRY(sys::CatchSignals(kSignalsAtTerminal)).fd);
  return signals;
}

// There is no program yet to pass a signal to: it ends the launch. False: none came.
Result<bool> TakeEnding(int fd, Outcome& outcome) {
  int signal = TRY(sys::TakeSignal(fd));
  while (signal == SIGWINCH) signal = TRY(sys::TakeSignal(fd));
  if (signal == SIGALRM) {
    outcome.timed_out = true;
    outcome.killed = true;  // nothing ran that could have an exit status
    PrintMessage("the time of --timeout was up before the program could be started");
  } else {
    outcome.exit.signal = signal;
  }
  return signal != 0;
}

Result<Finished> Launch(const LaunchRequest& request, const Options& options, const Signals& caught,
                        DataFiles& files) {
  const sys::CaughtSignals& signals = caught.caught;
  OwnProgram init = TRY(OpenOwnProgram(kInitName));
  sys::SocketPair gate = TRY(sys::MakePacketPair());
  CellOrders orders;
  orders.plan = &request.plan;
  orders.detached = &request.detached;
  orders.user_namespace = options.user_namespace;
  orders.init = init.fd.get();
  orders.gate = std::move(gate.second);
  orders.signal_mask = &signals.mask_before;
  orders.stop_fd = caught.ending();
  orders.stdio = request.job.stdio;
  orders.cgroup_parent = options.cgroup_parent;
  Streams streams = TRY(Streams::Make(options.output_bytes, options.terminal));
  orders.output = streams.job_output();
  orders.errors = streams.job_errors();
  Terminal terminal;  // before the cell: given back when nothing of the cell runs any more
  NativeCell cell = TRY(NativeCell::Make(std::move(orders)));
  if (!cell.outside().shared_with.empty())
    PrintMessage(Text("warning: ", SharedIds(cell.outside().shared_with)));
  // Not earlier: the child could not open its own id maps. From here on no other process of this
  // uid can look into the launcher.
  TRY(sys::SetNotDumpable());
  GateClient client(std::move(gate.first), caught.ending());
  streams.CloseJobEnds();
  if (options.terminal) {
    UniqueFd master = TRY(client.ReceiveTerminal());
    TRY(streams.TakeTerminal(std::move(master)));
  }
  Verified verified = TRY(VerifyCell(request.plan, cell, client));
  TRY(CheckKeyring(cell, verified.left_open));
  files.RemoveNames();  // not earlier: what is mounted is compared as a file that is there
  Finished finished;
  finished.plan = request.plan;
  if (TRY(TakeEnding(signals.fd.get(), finished.outcome))) return finished;
  if (options.time_limit.timeout_ms != 0) TRY(sys::SetAlarm(0));
  cell::Job job = request.job;
  job.foreground = terminal.is_ours() && !options.terminal;
  job.ignored_signals = signals.ignored;
  if (options.time_limit.timeout_ms != 0)  // init's own, should the stop key stop this process
    job.timeout_ms = options.time_limit.timeout_ms + options.time_limit.grace_ms;
  Watch watch{signals.fd.get(), options.time_limit, streams, request.plan.limits.oom_group};
  finished.outcome = TRY(Supervise(cell, client, job, watch));
  finished.facts = {cell.outside().way,   cell.proc_is_subset(), !cell.cgroup().limits_cpu(),
                    cell.keyring_stays(), options.output_bytes,  std::move(verified.left_open),
                    verified.landlock_abi};
  TRY(cell.cgroup().Remove());
  return finished;
}

Result<Finished> RunRequest(LaunchRequest& request, const Options& options, const Signals& signals,
                            DataFiles& files, std::optional<mounts::PinnedPath> agent) {
  std::optional<AgentSnapshot> snapshot;
  if (agent) {
    snapshot.emplace(
        TRY(AgentSnapshot::Make(*std::move(agent), request.plan.run_id, signals.ending())));
    for (const std::string& warning : snapshot->warnings()) PrintMessage("warning: " + warning);
    TRY(snapshot->AddTo(request));
  }
  TRY(cell::CheckPlan(request.plan));
  return Launch(request, options, signals, files);
}

}  // namespace

Result<Finished> RunInCell(const Options& options) {
  TRY(sys::CheckProc());
  // Before signals are caught: what waits for a descriptor's end, or for a file system, is ended by
  // them.
  std::vector<DataFile> contents =
      TRY(DataFiles::Read(options.files, FilesTimeoutMs(options.time_limit.timeout_ms)));
  // Making the cell may take as long as the program: a file system that does not answer has no
  // limit of its own. Where it is this process that waits for one, only what ends it gets through.
  if (options.time_limit.timeout_ms != 0) TRY(sys::SetAlarm(options.time_limit.timeout_ms));
  std::string run_id = TRY(MakeRunId());
  LaunchRequest request = TRY(MakeRequest(options, run_id, TermOfCaller()));
  std::optional<mounts::PinnedPath> agent;
  if (!options.agent_directory.empty()) agent = TRY(AgentSnapshot::Pin(options.agent_directory));
  const Signals signals = TRY(CatchAll(options.terminal));
  if (!options.seccomp.empty()) {
    request.plan.filter = TRY(
        CompileProfile(options.seccomp).With(Text("--seccomp '", Printable(options.seccomp), "'")));
  }
  DataFiles files = TRY(DataFiles::Make(std::move(contents), run_id));
  TRY(files.AddTo(request));
  Result<Finished> finished = RunRequest(request, options, signals, files, std::move(agent));
  if (finished.ok() || finished.error().code != "stopped") return finished;
  Finished early;
  early.plan = request.plan;
  (void)TRY(TakeEnding(signals.caught.fd.get(), early.outcome));
  return early;
}

}  // namespace taskcell::native

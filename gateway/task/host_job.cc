#include "gateway/task/host_job.h"

#include <array>
#include <utility>

#include "gateway/runtimes/stream.h"
#include "gateway/task/relay.h"
#include "gateway/task/stream_sink.h"
#include "launcher/base/text.h"
#include "launcher/gate/gate_host.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/spawn.h"

namespace taskcell::gateway {
namespace {

constexpr int kGateNumber = 3;
constexpr int kDirectoryNumber = 4;

struct HostProcess {
  sys::Child child;
  UniqueFd gate;
};

Result<HostProcess> Start(const std::string& program, int directory_fd) {
  sys::SocketPair pair = TRY(sys::MakePacketPair());
  const std::array<sys::PassedDescriptor, 2> passed = {
      {{pair.second.get(), kGateNumber}, {directory_fd, kDirectoryNumber}}};
  sys::Child child = TRY(
      sys::SpawnProgram(program, {"taskcell-host", Text("--gate-fd=", kGateNumber)}, {}, passed));
  return HostProcess{std::move(child), std::move(pair.first)};
}

}  // namespace

Status RelayOnHost(const HostRelay& relay, cell::Job job, Evidence& evidence) {
  evidence.on_host = true;
  // The pinned directory, whatever is done to its name meanwhile.
  job.working_directory = Text("/proc/self/fd/", kDirectoryNumber);
  Result<HostProcess> process = Start(relay.program, relay.directory_fd);
  if (!process.ok()) return std::move(process).error().Coded("transport_failed");
  gate::GateHost gate = TRY(gate::GateHost::Open(std::move(process->gate)));
  TRY(RelayJob({gate, nullptr, job, relay.sink, relay.max_turns, relay.deadline, relay.cancel_fd},
               evidence));
  (void)gate.Done();  // ignoring: it ends everything all the same when the gate is gone
  // Not killed: it goes when all of the job is gone, or its own time for that is over.
  (void)process->child.Wait();  // ignoring: how it ended adds nothing
  return Ok();
}

Result<Evidence> RunHostJob(const std::string& program, int directory_fd, cell::Job job,
                            const HostTerms& terms) {
  Evidence evidence;
  evidence.runtime = terms.runtime;
  evidence.account = terms.account;
  evidence.executable = job.argv.empty() ? "" : job.argv.front();
  evidence.max_turns = terms.max_turns;
  evidence.timeout_ms = terms.timeout_ms;
  StreamReader reader(terms.runtime, terms.max_turns, StreamReader::Tools::kAny);
  StreamSink sink(reader);
  TRY(RelayOnHost({program, directory_fd, sink, terms.max_turns, terms.deadline, terms.cancel_fd},
                  std::move(job), evidence));
  evidence.run = reader.Finish(CliExit(evidence.end));
  return evidence;
}

}  // namespace taskcell::gateway

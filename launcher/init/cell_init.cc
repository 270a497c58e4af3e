#include "launcher/init/cell_init.h"

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/job.h"
#include "launcher/init/attest.h"
#include "launcher/init/confine.h"
#include "launcher/init/export.h"
#include "launcher/init/gate.h"
#include "launcher/init/job_run.h"
#include "launcher/init/witness.h"
#include "launcher/sys/file.h"
#include "launcher/sys/job_control.h"
#include "launcher/sys/landlock.h"
#include "launcher/sys/self.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/terminal.h"

namespace taskcell::init {
namespace {

using cell::FrameReader;
using cell::FrameType;

// Makes the cell's loopback listeners, gives them away and keeps nothing of them: requests of the
// job are accepted by the broker outside. Notes their inodes in `own`.
Status HandOutListeners(const Options& options, Gate& gate, cell::InsideAttestation& seen,
                        OwnSockets& own) {
  if (!options.listen) return Ok();
  sys::LoopbackListener broker = TRY(sys::ListenLoopback());
  own.listener = TRY(sys::Stat(broker.fd.get())).st_ino;
  seen.listener_port = broker.port;
  if (!options.tunnels) {
    return gate.Send(FrameType::kListener, cell::EncodePorts({broker.port}),
                     std::array{broker.fd.get()});
  }
  sys::LoopbackListener tunnel = TRY(sys::ListenLoopback());
  own.tunnel_listener = TRY(sys::Stat(tunnel.fd.get())).st_ino;
  seen.tunnel_port = tunnel.port;
  return gate.Send(FrameType::kListener, cell::EncodePorts({broker.port, tunnel.port}),
                   std::array{broker.fd.get(), tunnel.fd.get()});
}

// Makes a terminal of the cell's own, gives the master side away and returns the job's.
Result<UniqueFd> HandOutTerminal(Gate& gate) {
  sys::TerminalPair terminal = TRY(sys::MakeTerminal("/dev/pts/ptmx"));
  TRY(gate.Send(FrameType::kTerminal, {}, std::array{terminal.master.get()}));
  return std::move(terminal.slave);
}

// The launcher makes every namespace of a cell anew and hands the gate over; an engine's may be
// another container's.
Status AttestSharingOfEngine(const Options& options, OwnSockets own, Gate& gate,
                             cell::InsideAttestation& seen) {
  if (options.gate_path.empty()) return Ok();
  own.gate = TRY(sys::Stat(gate.fd())).st_ino;
  own.gate_peer = TRY(sys::PeerPath(gate.fd()));
  return AttestSharing(own, seen);
}

// Reads the job's filter to its end and closes the descriptor.
Result<std::string> TakeFilter(int filter_fd) {
  UniqueFd fd(filter_fd);
  std::string bytes = TRY(sys::ReadAll(fd.get(), cell::kMaxFilterBytes));
  if (!bytes.empty() && bytes.size() % sizeof(sock_filter) == 0) return bytes;
  return Error(Kind::kViolation, Text(bytes.size(), " bytes are no filter"));
}

Status AdoptDescriptors(const Options& options) {
  for (const LimitDescriptor& limit : options.limits) {
    TRY(sys::CloseOnExec(limit.fd).With(Text("limit ", limit.name)));
  }
  return Ok();
}

void CloseLimits(const Options& options) {
  for (const LimitDescriptor& limit : options.limits) UniqueFd(limit.fd).Reset();
}

// The witness tries what is denied while init looks at the rest of the cell.
Result<Witness> SendAttestation(const Options& options, std::span<const char* const> environment,
                                Gate& gate) {
  TRY(AdoptDescriptors(options));
  cell::InsideAttestation seen;
  OwnSockets own;
  TRY(HandOutListeners(options, gate, seen, own).With("listener"));
  Confinement confinement;
  if (options.filter_fd >= 0) {
    seen.witness_filter = TRY(TakeFilter(options.filter_fd).With("filter"));
    confinement.filter.resize(seen.witness_filter.size() / sizeof(sock_filter));
    std::memcpy(confinement.filter.data(), seen.witness_filter.data(),
                confinement.filter.size() * sizeof(sock_filter));
  }
  AloneSeen alone = TRY(AttestAlone());
  TRY(AttestSharingOfEngine(options, std::move(own), gate, seen));
  confinement.nofile = options.nofile;
  confinement.file_bytes = options.file_bytes;
  confinement.landlock_abi = sys::LandlockAbi();
  confinement.mountinfo = alone.mountinfo;  // read in the witness alone, in a copy of its own
  UniqueFd terminal;
  if (options.stdio == cell::JobStdio::kTerminal) {
    // First: the terminal is a device, too.
    TRY(AttestDevices(seen).With("attest devices"));
    terminal = TRY(HandOutTerminal(gate).With("terminal"));
  }
  Witness witness =
      TRY(Witness::Start(confinement, options.stdio, std::move(terminal)).With("witness"));
  if (options.stdio != cell::JobStdio::kTerminal) TRY(AttestDevices(seen).With("attest devices"));
  TRY(AttestRest(options, environment, std::move(alone), witness.child().pid(), seen));
  CloseLimits(options);
  TRY(witness.Testify(seen).With("witness"));
  std::string bytes = cell::EncodeAttestation(seen);
  if (bytes.size() > cell::kMaxAttestationBytes) {
    return Error(Kind::kViolation, Text("an attestation of ", bytes.size(), " bytes"));
  }
  TRY(gate.Send(FrameType::kAttestation, bytes));
  return witness;
}

Result<cell::Job> WaitForJob(const Options& options, Gate& gate) {
  FrameReader::Message message = TRY(gate.Wait());
  if (message.type != FrameType::kJob) {
    return Error(Kind::kViolation, Text("gate: a message of type ", static_cast<int>(message.type),
                                        " where the job was due"));
  }
  cell::Job job = TRY(cell::ParseJob(message.payload));
  if (job.stdio == options.stdio) return job;
  return Error(Kind::kViolation, "the job wants other standard streams than its cell was made for");
}

// The attestation said so; between it and the job an engine may have started something here.
Status CheckStillAlone(pid_t witness) {
  std::vector<cell::ProcessSeen> others = TRY(OtherProcesses(witness));
  if (others.empty()) return Ok();
  return Error(Kind::kViolation, Text("process ", others[0].pid, " (", Printable(others[0].name),
                                      ") came into the cell from outside"));
}

// After the job: only kDone ends the wait (or the gate's end). Signals and a cancel may still be
// under way to a job that has ended. `all_gone`: nothing is left of the job.
Status WaitForDone(bool all_gone, Gate& gate) {
  bool was_exported = false;
  while (true) {
    FrameReader::Message message = TRY(gate.Wait());
    if (message.type == FrameType::kDone) return Ok();
    if (message.type == FrameType::kExport && !was_exported) {
      was_exported = true;
      TRY(SendExport(all_gone, gate));
      continue;
    }
    if (message.type != FrameType::kSignal && message.type != FrameType::kCancel) {
      return Error(Kind::kViolation, "gate: another message than done after the job");
    }
  }
}

Status Refuse(std::string_view stage, Error error, Gate& gate) {
  // ignoring: the other side may be the reason; the error itself is returned
  (void)gate.Send(FrameType::kRefused,
                  cell::EncodeRefusal({std::string(stage), error.err, error.text}));
  (void)WaitForDone(false, gate);
  return error;
}

}  // namespace

Status RunCell(const Options& options, std::span<const char* const> environment) {
  Gate gate = TRY(Gate::Open(options));
  Result<Witness> witness = SendAttestation(options, environment, gate);
  if (!witness.ok()) return Refuse("attest", std::move(witness).error(), gate);
  Result<cell::Job> job = WaitForJob(options, gate);
  if (!job.ok()) {
    // A gate that closed before a job came is how a refused cell ends.
    if (Gate::IsClosed(job.error())) return std::move(job).error();
    return Refuse("job", std::move(job).error(), gate);
  }
  Status alone = CheckStillAlone(witness->child().pid());
  if (!alone.ok()) return Refuse("processes", std::move(alone).error(), gate);
  bool stays = job->stays;
  const bool all_gone = TRY(RunJob(std::move(job).value(), std::move(witness).value(), gate));
  return stays ? WaitForDone(all_gone, gate) : Ok();
}

}  // namespace taskcell::init

// taskcell-host: runs one job on the host itself, without a cell, and ends all of it.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/cell/job.h"
#include "launcher/host/descendants.h"
#include "launcher/init/child_report.h"
#include "launcher/init/gate.h"
#include "launcher/init/job_run.h"
#include "launcher/init/job_setup.h"
#include "launcher/init/options.h"
#include "launcher/init/relay.h"
#include "launcher/init/witness.h"
#include "launcher/sys/file.h"
#include "launcher/sys/job_control.h"
#include "launcher/sys/output.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"
#include "launcher/sys/signals.h"

namespace taskcell::host {
namespace {

constexpr int kFailed = 125;

// In the child: becomes the job. The parent's end, in whatever way, is the job's.
[[noreturn]] void Become(const cell::Job& job, init::JobStreams streams, UniqueFd report) {
  std::string_view stage = "start";
  auto run = [&]() -> Error {
    Status bound = sys::SetParentDeathSignal(SIGKILL);
    if (!bound.ok()) return std::move(bound).error();
    Status taken = init::TakeStreams(job.stdio, streams, stage);
    if (!taken.ok()) return std::move(taken).error();
    streams = init::JobStreams();
    return init::ExecuteJob(job, 0, report.get(), stage);
  };
  const Error why = run();
  std::string text(1, init::kRefusalReport);
  text += cell::EncodeRefusal({std::string(stage), why.err, why.text});
  (void)sys::WriteAll(report.get(), text);  // ignoring: who should be told is gone
  sys::ExitNow(kFailed);
}

Status RunJob(const cell::Job& job, init::Gate& gate) {
  init::JobStreams streams;
  init::Relay relay = TRY(init::Relay::Make(streams));
  sys::Pipe report = TRY(sys::MakePipe());
  const uint64_t started_us = sys::MonotonicUs();
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) Become(job, std::move(streams), std::move(report.write_end));
  streams = init::JobStreams();
  report.write_end.Reset();
  relay.SetInput(job.input);
  const std::string refusal = TRY(init::ReadReport(report.read_end.get(), init::kStartTimeoutMs));
  if (!refusal.empty()) return gate.Send(cell::FrameType::kRefused, refusal.substr(1));
  const sys::Usage usage = TRY(sys::ChildrenUsage());
  TRY(init::SuperviseJob(
      {cloned.child.pid(), relay, started_us, job.timeout_ms, false, usage, KillDescendants},
      gate));
  return Ok();
}

Status Serve(init::Gate& gate) {
  cell::FrameReader::Message message = TRY(gate.Wait());
  if (message.type != cell::FrameType::kJob)
    return Error(Kind::kViolation, "gate: another message where the job was due");
  const cell::Job job = TRY(cell::ParseJob(message.payload));
  if (job.stdio != cell::JobStdio::kRelay)
    return Error(Kind::kViolation, "the job wants standard streams of its own");
  TRY(RunJob(job, gate));
  message = TRY(gate.Wait());
  if (message.type == cell::FrameType::kDone || message.type == cell::FrameType::kCancel)
    return Ok();
  return Error(Kind::kViolation, "gate: another message than done after the job");
}

Status Run(std::span<const std::string_view> arguments) {
  init::Options options = TRY(init::ParseOptions(arguments));
  TRY(sys::TakeSignals());
  TRY(sys::AdoptOrphans());
  init::Gate gate = TRY(init::Gate::Open(options));
  Status served = Serve(gate);
  Status ended = EndDescendants(init::kEndingTimeoutMs);
  TRY(std::move(served));
  return ended;
}

}  // namespace
}  // namespace taskcell::host

int main(int argc, char** argv) {
  // Before anything else: from here on no process of this uid can look into this one.
  taskcell::Status hidden = taskcell::sys::SetNotDumpable();
  std::vector<std::string_view> arguments(argv + 1, argv + (argc > 0 ? argc : 1));
  taskcell::Status done = hidden.ok() ? taskcell::host::Run(arguments) : std::move(hidden);
  if (done.ok()) return 0;
  // A gate that closed is how a job ends whose gateway is gone.
  if (!taskcell::init::Gate::IsClosed(done.error())) {
    taskcell::sys::PrintMessage("taskcell-host", done.error().text);
  }
  return taskcell::host::kFailed;
}

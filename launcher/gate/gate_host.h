#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/export.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/cell/job.h"

namespace taskcell::gate {

// Takes the job's output as it comes.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // `bytes` are at most one frame's payload and belong to the caller. Returning false cancels the
  // job (a rule of the reader is broken, or a bound reached): kCancel is sent and the pump goes on
  // to the end.
  virtual bool OnStdout(std::string_view bytes) = 0;
  virtual bool OnStderr(std::string_view bytes) = 0;
};

// Takes the files of an export as they come. An Error ends it.
class ExportSink {
 public:
  virtual ~ExportSink() = default;
  // The one before is whole.
  virtual Status OnFile(const cell::ExportFile& file) = 0;
  // The next bytes of it, never more than it was said to have.
  virtual Status OnBytes(std::string_view bytes) = 0;
};

// How a job ended, as far as the gate tells.
enum class JobOutcome : uint8_t {
  kExited,      // `exit` says how; reason kCancelled or kDeadline included
  kRefused,     // it never started: `refusal`
  kGateClosed,  // PID 1 went away without an exit frame: what happened is unknown
  kOverdue,     // no exit frame within the grace after the deadline or a cancel: kill the cell
};

struct JobEnd {
  JobOutcome outcome = JobOutcome::kGateClosed;
  bool started = false;
  bool cancelled = false;  // Cancel() was called, or the sink said stop
  bool deadline_passed = false;
  cell::JobExit exit;
  cell::Refusal refusal;
};

// The host's side of one gate. The peer is the cell's PID 1 and hostile: frames are bounded and
// sequenced, no control buffer is offered but for the expected descriptors, every wait has a
// deadline, and any broken rule is an Error of kind kViolation with the code cell_mismatch before
// the hand-over and transport_failed after it. After an error the gate is closed, which makes an
// honest init kill everything; the caller kills the cell in any case.
class GateHost {
 public:
  using Clock = std::chrono::steady_clock;

  // How long after the deadline or a cancel the exit frame may take before the job is overdue.
  static constexpr std::chrono::milliseconds kExitGrace{5000};

  // Owns `gate`, a connected SOCK_SEQPACKET. As soon as `cancel_fd` (-1: never) is readable or its
  // other end is gone, Attest and HandOver no longer wait: an Error with the code stopped. Pump
  // does not look at it: its caller may want to know why (see Cancel).
  static Result<GateHost> Open(UniqueFd gate, int cancel_fd = -1);

  struct Arrival {
    cell::InsideAttestation inside;
    UniqueFd listener;         // valid exactly when it was asked for
    UniqueFd tunnel_listener;  // the same
    UniqueFd terminal;         // the same: the master side of the cell's terminal
  };
  // Waits for the attestation, and before it for the cell's loopback listeners: 0, 1 or 2 of them
  // (cell::ListenerCount), in one message, and then for its terminal where `terminal` asks for one.
  Result<Arrival> Attest(std::size_t listeners, Clock::time_point deadline, bool terminal = false);

  // Hands the job over: that is "go". To be called only after the attestation was compared.
  Status HandOver(const cell::Job& job, Clock::time_point deadline);

  // Relays until the job ended. At `deadline` the job is cancelled from here. Errors: violations
  // and system failures; everything else is in the JobEnd.
  Result<JobEnd> Pump(OutputSink& sink, Clock::time_point deadline);

  // After the job has exited, once: has init send what the job left in cell::kExportDirectory,
  // within the bounds of cell/export.h, which hold here too, whatever init does. Whatever goes
  // wrong, an Error of the sink's included, closes the gate.
  Result<cell::ExportEnd> Export(ExportSink& sink, Clock::time_point deadline);

  // Asks Pump to cancel the job: from any thread, also before Pump began. The object must not be
  // moved from then on.
  void Cancel() const;

  // Says that the evidence is read: init may exit. The gate is closed.
  Status Done();

 private:
  GateHost(UniqueFd gate, UniqueFd cancel, int stop_fd);

  Result<cell::FrameReader::Message> ReceiveMessage(std::span<UniqueFd> passed,
                                                    Clock::time_point deadline);
  Result<Arrival> AttestUnguarded(std::size_t listeners, Clock::time_point deadline, bool terminal);
  Result<UniqueFd> TakeTerminal(Clock::time_point deadline);
  Result<cell::ListenerPorts> TakeListeners(std::size_t listeners, Clock::time_point deadline,
                                            Arrival* arrival);
  Status Send(cell::FrameType type, std::string_view payload, Clock::time_point deadline);
  Result<cell::ExportEnd> ExportUnguarded(ExportSink& sink, Clock::time_point deadline);
  Result<JobEnd> PumpUnguarded(OutputSink& sink, Clock::time_point deadline);
  void AskToEnd(Clock::time_point* give_up);
  Error GiveUp(Error error, std::string_view code);
  Result<short> Await(short events, Clock::time_point deadline) const;

  UniqueFd gate_;
  UniqueFd cancel_;                 // eventfd
  int stop_fd_;                     // the caller's, or -1
  std::unique_ptr<char[]> buffer_;  // of kMaxFrameBytes, its pages untouched until one is that long
  cell::FrameReader reader_;
  cell::FrameWriter writer_;
};

}  // namespace taskcell::gate

#include "launcher/gate/gate_host.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/sys/listener.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/terminal.h"

namespace taskcell::gate {
namespace {

using cell::FrameType;
using Clock = GateHost::Clock;

// The time left as poll wants it, rounded up, so that a wait never ends just before its deadline.
int MillisecondsUntil(Clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  constexpr int64_t kLongest = 1 << 30;
  return static_cast<int>(std::clamp<int64_t>(left, 0, kLongest));
}

Error Violation(std::string text) { return Error(Kind::kViolation, std::move(text)); }

std::string Name(FrameType type) { return Text("frame of type ", static_cast<int>(type)); }

// What its first process said instead of what was due.
Error GaveUp(std::string_view payload) {
  Result<cell::Refusal> refusal = cell::ParseRefusal(payload);
  if (!refusal.ok()) return std::move(refusal).error();
  return Error(
      Kind::kSystem,
      Text("the cell's first process gave up: ", refusal->stage, ": ", Printable(refusal->text)),
      refusal->err);
}

Error GateClosed() {
  return Error(Kind::kSystem, "the cell's first process went away", ECONNRESET);
}

}  // namespace

GateHost::GateHost(UniqueFd gate, UniqueFd cancel, int stop_fd)
    : gate_(std::move(gate)),
      cancel_(std::move(cancel)),
      stop_fd_(stop_fd),
      buffer_(std::make_unique_for_overwrite<char[]>(cell::kMaxFrameBytes)) {}

Result<GateHost> GateHost::Open(UniqueFd gate, int cancel_fd) {
  TRY(sys::SetNonBlocking(gate.get()));
  return GateHost(std::move(gate), TRY(sys::MakeEvent()), cancel_fd);
}

// What the gate has of `events`, 0 at the deadline.
Result<short> GateHost::Await(short events, Clock::time_point deadline) const {
  std::array<struct pollfd, 2> wait = {{{gate_.get(), events, 0}, {stop_fd_, POLLIN, 0}}};
  TRY(sys::PollAll(wait, MillisecondsUntil(deadline)));
  if (wait[1].revents == 0) return wait[0].revents;
  return Error(Kind::kSystem, "no longer waited for, as asked", ECANCELED).Coded("stopped");
}

Error GateHost::GiveUp(Error error, std::string_view code) {
  gate_.Reset();
  if (!error.text.starts_with("gate: ")) error = std::move(error).With("gate");
  return error.code == "stopped" ? error : std::move(error).Coded(code);
}

// Receives packets until one whole message is there. Only the first packet may bring descriptors,
// and only as many as `passed` has places.
Result<cell::FrameReader::Message> GateHost::ReceiveMessage(std::span<UniqueFd> passed,
                                                            Clock::time_point deadline) {
  cell::FrameReader::Message message;
  while (true) {
    if (Clock::now() >= deadline)
      return Error(Kind::kViolation, "the cell's first process said nothing in time", ETIMEDOUT);
    if (TRY(Await(POLLIN, deadline)) == 0) continue;
    auto packet =
        sys::ReceivePacketWith(gate_.get(), {buffer_.get(), cell::kMaxFrameBytes}, passed);
    if (!packet.ok() && packet.error().err == EAGAIN) continue;
    if (!packet.ok()) return std::move(packet).error();
    if (packet->size == 0) return GateClosed();
    if (packet->control_discarded) return Violation("a descriptor came that nobody asked for");
    passed = {};
    if (TRY(reader_.Take(std::string_view(buffer_.get(), packet->size), message))) return message;
  }
}

Result<cell::ListenerPorts> GateHost::TakeListeners(std::size_t listeners,
                                                    Clock::time_point deadline, Arrival* arrival) {
  std::array<UniqueFd, 2> passed;
  auto message = TRY(ReceiveMessage(std::span(passed).first(listeners), deadline));
  if (message.type == FrameType::kRefused) return GaveUp(message.payload);
  if (message.type != FrameType::kListener)
    return Violation(Name(message.type) + " came where the listener was due");
  cell::ListenerPorts ports = TRY(cell::ParsePorts(message.payload));
  if ((ports.tunnel != 0) != (listeners == 2))
    return Violation("the listener frame names another number of ports than was asked for");
  for (std::size_t index = 0; index < listeners; ++index) {
    if (!passed[index].valid()) return Violation("the listener frame brought no descriptor");
    uint16_t bound = TRY(sys::LoopbackListenerPort(passed[index].get()));
    uint16_t named = index == 0 ? ports.broker : ports.tunnel;
    if (bound != named)
      return Violation(Text("the listener is bound to port ", bound, ", not ", named));
  }
  arrival->listener = std::move(passed[0]);
  arrival->tunnel_listener = std::move(passed[1]);
  return ports;
}

Result<UniqueFd> GateHost::TakeTerminal(Clock::time_point deadline) {
  std::array<UniqueFd, 1> passed;
  auto message = TRY(ReceiveMessage(passed, deadline));
  if (message.type == FrameType::kRefused) return GaveUp(message.payload);
  if (message.type != FrameType::kTerminal)
    return Violation(Name(message.type) + " came where the terminal was due");
  if (passed[0].valid() && sys::IsTerminalMaster(passed[0].get())) return std::move(passed[0]);
  return Violation("the terminal's frame brought no terminal");
}

Result<GateHost::Arrival> GateHost::AttestUnguarded(std::size_t listeners,
                                                    Clock::time_point deadline, bool terminal) {
  Arrival arrival;
  cell::ListenerPorts ports;
  if (listeners > 0) ports = TRY(TakeListeners(listeners, deadline, &arrival));
  if (terminal) arrival.terminal = TRY(TakeTerminal(deadline));
  auto message = TRY(ReceiveMessage({}, deadline));
  if (message.type == FrameType::kRefused) {
    auto refusal = TRY(cell::ParseRefusal(message.payload));
    return Error(Kind::kSystem,
                 Text("the cell's first process could not attest: ", refusal.stage, ": ",
                      Printable(refusal.text)),
                 refusal.err);
  }
  if (message.type != FrameType::kAttestation)
    return Violation(Name(message.type) + " came where the attestation was due");
  arrival.inside = TRY(cell::ParseAttestation(message.payload));
  if (arrival.inside.listener_port != ports.broker) {
    return Violation(Text("the attestation names listener port ", arrival.inside.listener_port,
                          ", the listener came on ", ports.broker));
  }
  if (arrival.inside.tunnel_port != ports.tunnel) {
    return Violation(Text("the attestation names port ", arrival.inside.tunnel_port,
                          " for tunnels, their listener came on ", ports.tunnel));
  }
  return arrival;
}

Result<GateHost::Arrival> GateHost::Attest(std::size_t listeners, Clock::time_point deadline,
                                           bool terminal) {
  if (listeners > 2) return Error(Kind::kInternal, "a cell has at most two listeners");
  auto arrival = AttestUnguarded(listeners, deadline, terminal);
  if (!arrival.ok()) return GiveUp(std::move(arrival).error(), "cell_mismatch");
  return arrival;
}

Status GateHost::Send(FrameType type, std::string_view payload, Clock::time_point deadline) {
  return writer_.Write(type, payload, [&](std::string_view packet) -> Status {
    while (true) {
      Status sent = sys::SendPacket(gate_.get(), packet);
      if (sent.ok() || sent.error().err != EAGAIN) return sent;
      if (Clock::now() >= deadline)
        return Error(Kind::kViolation, "the cell's first process does not read", ETIMEDOUT);
      TRY(Await(POLLOUT, deadline));
    }
  });
}

Status GateHost::HandOver(const cell::Job& job, Clock::time_point deadline) {
  Status sent = Send(FrameType::kJob, cell::EncodeJob(job), deadline);
  if (!sent.ok()) return GiveUp(std::move(sent).error(), "transport_failed");
  return sent;
}

void GateHost::Cancel() const {
  (void)sys::SignalEvent(cancel_.get());  // ignoring: a full counter is as readable as any
}

// Sends the cancel frame and starts the grace.
void GateHost::AskToEnd(Clock::time_point* give_up) {
  Clock::time_point now = Clock::now();
  *give_up = now + kExitGrace;
  // ignoring: an init that takes no cancel is overdue after the grace
  (void)Send(FrameType::kCancel, {}, now);
}

Result<JobEnd> GateHost::PumpUnguarded(OutputSink& sink, Clock::time_point deadline) {
  JobEnd end;
  bool asked_to_end = false;
  Clock::time_point wake = deadline;  // the deadline, then the end of the grace
  cell::FrameReader::Message message;
  std::array<struct pollfd, 2> wait = {{{gate_.get(), POLLIN, 0}, {cancel_.get(), POLLIN, 0}}};
  while (true) {
    if (Clock::now() >= wake) {
      end.outcome = JobOutcome::kOverdue;
      if (asked_to_end) return end;
      end.deadline_passed = true;
    }
    bool cancel_asked = !asked_to_end && (wait[1].revents & POLLIN) != 0;
    if (cancel_asked) end.cancelled = true;
    if (!asked_to_end && (end.deadline_passed || end.cancelled)) {
      AskToEnd(&wake);
      asked_to_end = true;
      wait[1].fd = -1;  // poll leaves it out from now on
    }
    TRY(sys::PollAll(wait, MillisecondsUntil(wake)));
    if (wait[0].revents == 0) continue;
    auto packet = sys::ReceivePacket(gate_.get(), {buffer_.get(), cell::kMaxFrameBytes}, false);
    if (!packet.ok() && packet.error().err == EAGAIN) continue;
    bool closed = packet.ok() ? packet->size == 0 : packet.error().err == ECONNRESET;
    if (closed) {
      end.outcome = JobOutcome::kGateClosed;
      return end;
    }
    if (!packet.ok()) return std::move(packet).error();
    if (packet->control_discarded) return Violation("a descriptor came that nobody asked for");
    if (!TRY(reader_.Take(std::string_view(buffer_.get(), packet->size), message))) continue;
    switch (message.type) {
      case FrameType::kStarted:
        if (end.started) return Violation("the job started twice");
        end.started = true;
        break;
      case FrameType::kRefused:
        if (end.started) return Violation("the job was refused after it had started");
        end.refusal = TRY(cell::ParseRefusal(message.payload));
        end.outcome = JobOutcome::kRefused;
        return end;
      case FrameType::kStdout:
      case FrameType::kStderr:
        if (!end.started) return Violation("output came before the job had started");
        if (end.cancelled) break;  // nobody listens any more
        if (message.type == FrameType::kStdout ? !sink.OnStdout(message.payload)
                                               : !sink.OnStderr(message.payload))
          end.cancelled = true;
        break;
      case FrameType::kExit:
        if (!end.started) return Violation("the job ended before it had started");
        end.exit = TRY(cell::ParseExit(message.payload));
        end.outcome = JobOutcome::kExited;
        return end;
      default:
        return Violation(Name(message.type) + " came while the job ran");
    }
  }
}

Result<JobEnd> GateHost::Pump(OutputSink& sink, Clock::time_point deadline) {
  auto end = PumpUnguarded(sink, deadline);
  if (!end.ok()) return GiveUp(std::move(end).error(), "transport_failed");
  return end;
}

Result<cell::ExportEnd> GateHost::ExportUnguarded(ExportSink& sink, Clock::time_point deadline) {
  TRY(Send(FrameType::kExport, {}, deadline));
  std::size_t files = 0;
  uint64_t bytes = 0;
  uint64_t missing = 0;  // of the file at hand
  while (true) {
    const auto message = TRY(ReceiveMessage({}, deadline));
    if (message.type == FrameType::kExportBytes) {
      if (message.payload.empty() || message.payload.size() > missing)
        return Violation("a file has other bytes than it was said to have");
      missing -= message.payload.size();
      TRY(sink.OnBytes(message.payload));
      continue;
    }
    if (message.type == FrameType::kExportEnd) {
      cell::ExportEnd end = TRY(cell::ParseExportEnd(message.payload));
      if (end.is_complete && missing > 0) return Violation("the last file is not whole");
      return end;
    }
    if (message.type != FrameType::kExportFile)
      return Violation(Name(message.type) + " came into an export");
    if (missing > 0) return Violation("a file is not whole where the next begins");
    const cell::ExportFile file = TRY(cell::ParseExportFile(message.payload));
    missing = file.bytes;
    bytes += file.bytes;
    if (++files > cell::kMaxExportFiles || bytes > cell::kMaxExportBytes)
      return Violation("more comes than an export may have");
    TRY(sink.OnFile(file));
  }
}

Result<cell::ExportEnd> GateHost::Export(ExportSink& sink, Clock::time_point deadline) {
  auto end = ExportUnguarded(sink, deadline);
  if (!end.ok()) return GiveUp(std::move(end).error(), "export_failed");
  return end;
}

Status GateHost::Done() {
  if (!gate_.valid()) return Ok();
  Status sent = Send(FrameType::kDone, {}, Clock::now());
  gate_.Reset();
  if (!sent.ok() && sent.error().err == EPIPE) return Ok();  // it is gone already
  return sent;
}

}  // namespace taskcell::gate

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/cell/gate_protocol.h"
#include "launcher/cgroup/events.h"
#include "launcher/sys/socket.h"
#include "probe/cells/cell_engine.h"
#include "tests/unit/launcher/cell/sample_attestation.h"

namespace taskcell::gateway {

// A cell whose first process attests to exactly what was planned and then waits for its job.
// `on_observe` runs when the attestation has come and is about to be compared, `change` makes the
// attestation another one; one that `stays` cannot be removed.
class WaitingCell : public probe::RunningCell {
 public:
  WaitingCell(const cell::CellPlan& plan, UniqueFd gate, std::function<void()> on_observe,
              const std::function<void(cell::Attestation&)>& change = {}, bool stays = false)
      : plan_(plan),
        seen_(cell::MatchingAttestation(plan, cell::Engine::kDocker)),
        gate_(std::move(gate)),
        on_observe_(std::move(on_observe)),
        stays_(stays) {
    if (change) change(seen_);
  }

  const cell::CellPlan& plan() const override { return plan_; }
  pid_t host_pid() const override { return seen_.outside.host_pid; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  UniqueFd TakeGate() override { return std::move(gate_); }
  Result<cell::OutsideAttestation> Observe() override {
    on_observe_();
    return seen_.outside;
  }
  Result<cgroup::Events> ReadEvents() override { return cgroup::Events{}; }
  Status Kill() override { return Ok(); }
  Status Remove() override { return stays_ ? Status(Error(Kind::kSystem, "it stays")) : Ok(); }

 private:
  cell::CellPlan plan_;
  cell::Attestation seen_;
  UniqueFd gate_;
  std::function<void()> on_observe_;
  bool stays_;
  std::vector<std::string> warnings_;
};

// Says over the gate what the first process of that cell says.
inline void Attest(const cell::CellPlan& plan, int gate,
                   const std::function<void(cell::Attestation&)>& change = {}) {
  sys::LoopbackListener listener = sys::ListenLoopback().value();
  cell::Attestation whole = cell::MatchingAttestation(plan, cell::Engine::kDocker);
  if (change) change(whole);
  cell::InsideAttestation seen = std::move(whole.inside);
  seen.listener_port = listener.port;
  cell::FrameWriter writer;
  auto send = [&](cell::FrameType type, std::string_view payload, int fd) {
    Status sent = writer.Write(
        type, payload, [&](std::string_view packet) { return sys::SendPacket(gate, packet, fd); });
    EXPECT_TRUE(sent.ok()) << sent.error().text;
  };
  send(cell::FrameType::kListener, cell::EncodePorts({listener.port}), listener.fd.get());
  send(cell::FrameType::kAttestation, cell::EncodeAttestation(seen), -1);
}

}  // namespace taskcell::gateway

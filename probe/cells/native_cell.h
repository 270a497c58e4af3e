#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "launcher/sys/spawn.h"
#include "probe/cells/cell_engine.h"
#include "probe/cells/launch_status.h"

namespace taskcell::probe {

// How long taskcell-launch may take until the cell stands, and to clean up after the cell ended.
inline constexpr std::chrono::milliseconds kLaunchTimeout{10000};
inline constexpr std::chrono::milliseconds kLaunchEndTimeout{10000};

// One cell under one taskcell-launch process, which dies with this process.
class NativeCell final : public RunningCell {
 public:
  static Result<std::unique_ptr<RunningCell>> Make(cell::CellPlan plan, const CellPlaces& places);
  ~NativeCell() override;

  const cell::CellPlan& plan() const override { return plan_; }
  pid_t host_pid() const override { return host_pid_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  UniqueFd TakeGate() override { return std::move(gate_); }
  Result<cell::OutsideAttestation> Observe() override;
  Result<cgroup::Events> ReadEvents() override;
  Status Kill() override;
  Status Remove() override;

 private:
  using Clock = std::chrono::steady_clock;

  explicit NativeCell(cell::CellPlan plan) : plan_(std::move(plan)) {}

  Status Launch(const CellPlaces& places);
  Result<LaunchStatus> ReadStatus(Clock::time_point deadline);
  Status AwaitEnd();

  cell::CellPlan plan_;
  sys::Child launcher_;
  UniqueFd status_;
  std::string unread_;  // of the status descriptor, behind the last whole line
  pid_t host_pid_ = 0;
  UniqueFd pidfd_;
  UniqueFd gate_;
  std::vector<std::string> warnings_;
};

}  // namespace taskcell::probe

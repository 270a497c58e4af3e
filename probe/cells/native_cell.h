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
// To clean up where the cell is not there yet and is no longer wanted.
inline constexpr std::chrono::milliseconds kLaunchFarewell{2000};

// One cell under one taskcell-launch process, which dies with this process.
class NativeCell final : public RunningCell {
 public:
  // As soon as `cancel_fd` (-1: never) is readable or its other end is gone, the cell is no longer
  // waited for: an Error with the code stopped.
  static Result<std::unique_ptr<RunningCell>> Make(cell::CellPlan plan, const CellPlaces& places,
                                                   int cancel_fd = -1);
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

  Status Launch(const CellPlaces& places, int cancel_fd);
  Result<LaunchStatus> ReadStatus(Clock::time_point deadline, int cancel_fd);
  Status EndLauncher();
  Status AwaitEnd(std::chrono::milliseconds limit);

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

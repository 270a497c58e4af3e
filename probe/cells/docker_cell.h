#pragma once

#include <memory>
#include <string>
#include <vector>

#include "probe/cells/cell_engine.h"
#include "probe/cells/gate_directory.h"
#include "probe/engine/client.h"

namespace taskcell::probe {

// One container made for one run.
class DockerCell final : public RunningCell {
 public:
  struct Terms {
    bool podman = false;
    bool check_reported = false;  // a container that the engine itself says has other limits than
                                  // asked is not started (resource_limits_unenforced)
    int cancel_fd = -1;           // readable, or its other end gone: given up (stopped)
    bool* may_exist = nullptr;    // set where the engine was asked for a container and did not
                                  // clearly refuse one, whatever becomes of it
  };

  // Brings init and the gate in, creates, starts, and waits for PID 1 at the gate.
  static Result<std::unique_ptr<RunningCell>> Make(std::shared_ptr<EngineClient> client,
                                                   const ImageFacts& image, cell::CellPlan plan,
                                                   const CellPlaces& places, const Terms& terms);
  ~DockerCell() override;

  const cell::CellPlan& plan() const override { return plan_; }
  pid_t host_pid() const override { return host_pid_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  UniqueFd TakeGate() override { return std::move(gate_); }
  Result<std::optional<ReportedLimits>> Reported() override;
  Result<cell::OutsideAttestation> Observe() override;
  Result<cgroup::Events> ReadEvents() override;
  Status Kill() override;
  Status Remove() override;

 private:
  using Clock = GateDirectory::Clock;

  DockerCell(std::shared_ptr<EngineClient> client, cell::CellPlan plan,
             GateDirectory gate_directory)
      : client_(std::move(client)),
        plan_(std::move(plan)),
        gate_directory_(std::move(gate_directory)) {}

  Status StandAtGate(const ImageFacts& image, const Terms& terms);
  Status Create(const ImageFacts& image, const Terms& terms);
  Status CheckReported();
  Status FindFirstProcess(Clock::time_point deadline);
  Error NotHere(Clock::time_point deadline);
  Status RemoveIfAnswered();

  const std::shared_ptr<EngineClient> client_;
  cell::CellPlan plan_;
  GateDirectory gate_directory_;
  std::vector<UniqueFd> pins_;
  // The container's id; its name while the answer to its creation is unknown; empty when it is
  // gone.
  std::string container_;
  bool maybe_not_ours_ = false;
  pid_t host_pid_ = 0;
  UniqueFd pidfd_;
  UniqueFd gate_;
  std::vector<std::string> warnings_;
};

}  // namespace taskcell::probe

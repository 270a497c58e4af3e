#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"

namespace taskcell::probe {

// Where the gate of an engine's cell is reached from the inside.
inline constexpr char kGateMount[] = "/run/taskcell/gate.d";
inline constexpr char kGateSocketInside[] = "/run/taskcell/gate.d/gate";

// The directory of one run's gate socket, below the run directory. The run directory (0700) keeps
// everyone of the host out; the gate directory is 0711 and the socket 0666, so that the cell
// reaches it whatever ids it has. The destructor removes both.
class GateDirectory {
 public:
  using Clock = std::chrono::steady_clock;

  // Makes `gate.d` below `run_directory` with a listening socket in it. The run directory must be a
  // directory of this user without any access for others. Error code workspace_failed.
  static Result<GateDirectory> Make(const std::string& run_directory);

  GateDirectory(GateDirectory&&) noexcept = default;
  GateDirectory& operator=(GateDirectory&&) = delete;
  ~GateDirectory();

  // The planned mount that brings the directory into the cell; pinned as long as this object lives.
  const cell::PlannedMount& mount() const { return mount_; }

  // Waits for the one connection of the process `pid`, which `pidfd` refers to, then closes and
  // removes the socket: nobody connects a second time. Error codes: cell_mismatch: another peer,
  // two connections, the process ended, or nobody came by the deadline; stopped: `cancel_fd` (-1:
  // none) became readable or its other end is gone.
  Result<UniqueFd> AcceptFrom(pid_t pid, int pidfd, Clock::time_point deadline, int cancel_fd = -1);

  // Removes what is left on disk. Idempotent.
  Status Remove();

 private:
  GateDirectory() = default;

  Status CloseListener();

  UniqueFd run_directory_;
  UniqueFd directory_;
  UniqueFd listener_;
  bool socket_exists_ = false;
  bool directory_exists_ = false;
  cell::PlannedMount mount_;
};

}  // namespace taskcell::probe

#pragma once

#include <memory>
#include <mutex>

#include "gateway/egress/broker.h"
#include "gateway/task/idle_pool.h"
#include "gateway/task/limits_probe.h"
#include "gateway/task/task.h"
#include "gateway/task/uncovered.h"
#include "launcher/base/result.h"
#include "probe/engine/client.h"
#include "probe/engine/endpoint.h"

namespace taskcell::gateway {

// The world as it is: this process's environment, the engines of this host, one broker for all
// tasks of this process, and connections and helping processes that one task hands on to the next.
class HostSurroundings {
 public:
  // Error code workspace_failed when the programs are not found.
  static Result<std::unique_ptr<HostSurroundings>> Make();

  // What one task gets; this object must outlive it. `cancel_fd` as in Surroundings. Any thread may
  // ask.
  Surroundings For(int cancel_fd);

 private:
  HostSurroundings() = default;
  Result<std::unique_ptr<probe::CellEngine>> MakeEngine(const TaskcellSettings& settings,
                                                        int cancel_fd);
  Result<Broker*> SharedBroker();

  Environment environment_;
  Programs programs_;
  LimitsProbe limits_probe_;
  UncoveredPaths uncovered_;
  IdlePool<probe::EngineClient> engines_;
  IdlePool<mounts::FileReader> files_;
  IdlePool<mounts::SnapshotTaker> snapshots_;
  std::mutex mutex_;  // of the broker's start
  std::unique_ptr<Broker> broker_;
};

// The socket of the engine `settings` and the environment name, for every engine but native. Error
// code docker_unreachable.
Result<probe::Endpoint> ChooseHostEndpoint(const TaskcellSettings& settings);

}  // namespace taskcell::gateway

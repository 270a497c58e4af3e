#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"
#include "probe/engine/api_version.h"

namespace taskcell::probe {

// The labels a cell's container carries; part of what other tools of the platform rely on.
inline constexpr char kLabelTask[] = "com.duduclaw.task-sandbox";  // "1"
inline constexpr char kLabelRun[] = "com.duduclaw.task-sandbox.run";
inline constexpr char kLabelAgent[] = "com.duduclaw.task-sandbox.agent";
inline constexpr char kLabelHome[] = "com.duduclaw.task-sandbox.home";
inline constexpr char kLabelDeadline[] = "com.duduclaw.task-sandbox.deadline";  // unix seconds

// "dudu-task-<run id>".
std::string ContainerName(const std::string& run_id);

// A request to create one cell, and all that can be asked of an engine here: there is no field for
// a capability, a device, a host namespace, a published port, a volume, a security profile or a
// writable bind mount, so none can ever be sent.
struct CreateRequest {
  std::string image_id;                        // as the engine's image inspect gave it
  std::vector<std::string> entrypoint;         // absolute program and its arguments
  std::vector<std::string> image_environment;  // names the image sets: unset for PID 1
  cell::CellPlan plan;
  // Podman refuses uid= and gid= of a tmpfs: it is root's then, and open to all in the cell, which
  // is one user. And it fills a tmpfs from the image unless told not to.
  bool podman = false;
};

// The name as query and the body of POST /containers/create. kConfig when something in it can't be
// said in the request (a path that is not UTF-8, a writable mount).
struct CreateCall {
  std::string name;
  std::string body;
};
Result<CreateCall> EncodeCreate(const CreateRequest& request);

}  // namespace taskcell::probe

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gateway/config/home.h"
#include "gateway/task/task.h"

namespace taskcell::gateway {

enum class RowState : uint8_t {
  kOk,
  kNote,  // fine, and worth knowing
  kWarn,  // no task is refused for it
  kFail,  // a task is refused for it
};

// One thing doctor looked at. Texts may have several lines.
struct DoctorRow {
  std::string id;  // "configuration", "engine", "image", "account mine", "agent scout", ...
  RowState state = RowState::kOk;
  std::string text;
};

struct DoctorReport {
  std::vector<DoctorRow> rows;
  bool refused = false;  // an agent whose sandbox is on would be refused now
};

// Looks at everything a task of this home needs, runs none and asks no provider: configuration,
// engine and its limits, image, accounts, and each agent with the sandbox on as admission itself
// judges it, with what its cell would see of its directory. The limits of a rootless engine and of
// the launcher are proven by a cell without a job. Leaves nothing behind.
DoctorReport Diagnose(const Home& home, Surroundings& surroundings);

}  // namespace taskcell::gateway

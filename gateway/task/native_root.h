#pragma once

#include <cstdint>
#include <string>

#include "gateway/config/taskcell_settings.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/compare.h"

namespace taskcell::gateway {

// The root of native cells: the host's programs, or a directory that is pinned, so that what is
// checked is what is used. Must outlive the cell.
struct NativeRoot {
  UniqueFd fd;       // invalid: the host
  std::string path;  // of the directory
  uint64_t device = 0;
  uint64_t inode = 0;
};

// Pins what [taskcell] root names. Error code invalid_config.
Result<NativeRoot> PinNativeRoot(const TaskcellSettings& settings);

// Sets the root of a cell that `engine` makes: `image`, or natively `root`.
void PlanRoot(cell::Engine engine, const std::string& image, const NativeRoot& root,
              cell::CellPlan& plan);

// Why no native cell can start the program at the absolute path `program`, as seen from outside, by
// its mode and not by who may execute it; empty: it is a file that may be executed, in the root
// directory, or among what a cell sees of the host.
std::string WhyNoProgram(const NativeRoot& root, const std::string& program);

}  // namespace taskcell::gateway

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/native/id_maps.h"
#include "launcher/native/supervisor.h"

namespace taskcell::native {

// Creates or empties the file a report goes to. Refuses what is no plain file: a FIFO nobody reads
// would hold up the launch for ever, and a link may lead to a file that was not meant.
Result<UniqueFd> OpenReport(const std::string& path);

// Writes the whole of it, in place of what a program that was given the file wrote there.
Status WriteReport(int fd, std::string_view text);

// What is true of a cell beyond its outcome.
struct CellFacts {
  MapWay ids = MapWay::kOwn;
  bool proc_is_subset = false;
  bool cpu_is_unlimited = false;            // only where the plan allowed it
  bool keyring_stays = false;               // the caller's session keyring could not be left
  uint64_t output_bytes = 0;                // the bound on output, 0: none
  std::vector<std::string> left_open = {};  // cell::CallsLeftOpen
  int32_t landlock_abi = 0;                 // 0: the kernel has none, or a filter forbids it
};

// The JSON report of a run, one object and a newline. Pure.
std::string ReportOutcome(const cell::CellPlan& plan, const CellFacts& facts,
                          const Outcome& outcome);

// The JSON report of a launch that failed. Pure.
std::string ReportError(const Error& error);

// The processor time of all of the cell. On v1 the kernel counts it in a controller of its own,
// where a cell may not be: then init's count of all it reaped serves, and a cell killed at its
// deadline has sent none.
std::optional<uint64_t> CpuTime(const Outcome& outcome);

// "none" where the cell has the caller's own kernel uid, else where its uid comes from.
std::string_view UidSeparation(MapWay way);

// The stable name of an error's kind: "usage", "denied", ... Pure.
std::string_view Name(Kind kind);

}  // namespace taskcell::native

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "probe/cells/cell_engine.h"
#include "probe/cells/cell_report.h"
#include "probe/live/asked.h"
#include "probe/live/verdict.h"

namespace taskcell::live {

// What came of breaking the limits of one engine's cells.
struct Report : probe::CellReport {  // differences: other than of limits
  std::vector<Row> rows;             // empty where no cell was made
};

// Not held: a limit that is not, an engine's word that is not true, a cell that differs from its
// plan, or limits refused as unenforceable. Unknown: none of these, but a row or a refusal that
// tells nothing. Pure.
Verdict Overall(const Report& report);

// The ids of a cell: where they are mapped to others, and where not and this process is root.
inline constexpr uint32_t kInsideId = 1000;
inline constexpr uint32_t kNobody = 65534;

// Where a probe's cells are made and what they are made of.
struct Setting {
  uint32_t uid = 0;
  uint32_t gid = 0;
  cell::RootKind root = cell::RootKind::kHost;
  std::string root_source;
  std::vector<cell::PlannedMount> mounts;  // pinned by the caller
  probe::CellPlaces places;
};

// Makes three cells, one after the other (the limits, the output, the deadline), and judges what
// happened in them. `stopped` is asked between them, and ends it with the code "stopped".
Report BreakLimits(probe::CellEngine& engine, const Setting& setting, const Asked& asked,
                   const std::function<bool()>& stopped);

}  // namespace taskcell::live

#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/compare.h"
#include "launcher/cgroup/events.h"
#include "launcher/gate/gate_host.h"
#include "probe/cells/cell_engine.h"
#include "probe/live/payload.h"

namespace taskcell::live {

// Where taskcell-breaker is in every probe's cell: not below /run, over which Podman's is covered.
inline constexpr char kBreakerInside[] = "/taskcell-breaker";

// One cell, and what is to be tried in it.
struct TrialOrders {
  cell::CellPlan plan;
  std::vector<Attempt> attempts;
  uint64_t output_bytes = 0;  // then the job is cancelled
  uint64_t deadline_ms = 0;   // of the job, kept inside and outside
};

// Everything known about one trial.
struct Trial {
  cell::Attestation seen;
  std::vector<cell::Mismatch> mismatches;
  std::optional<probe::ReportedLimits> reported;
  std::vector<Finding> findings;
  uint64_t output_bytes = 0;  // that came back
  std::string errors;         // the start of what the program wrote to standard error
  gate::JobEnd end;
  std::optional<cgroup::Events> events;
  std::vector<std::string> warnings;
};

// Makes a cell, attests it, runs taskcell-breaker in it whatever the attestation says (that is the
// point; the program is bounded by itself), reads what the kernel counted, and removes the cell. An
// Error says that no trial was made, with the code of what was in the way: nothing is left then, or
// the text says what. A cell that could not be removed is a warning.
Result<Trial> RunTrial(probe::CellEngine& engine, const probe::CellPlaces& places,
                       const TrialOrders& orders);

}  // namespace taskcell::live

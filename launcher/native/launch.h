#pragma once

#include "launcher/base/result.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/native/options.h"
#include "launcher/native/report.h"
#include "launcher/native/supervisor.h"

namespace taskcell::native {

struct Finished {
  cell::CellPlan plan;
  Outcome outcome;
  CellFacts facts;
};

// Makes the cell of the command line, verifies it, runs the program in it and removes it. Prints
// warnings about an agent directory and about ids that others have too, and nothing else.
Result<Finished> RunInCell(const Options& options);

}  // namespace taskcell::native

#pragma once

#include "launcher/cell/attestation.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/compare.h"

namespace taskcell::cell {

// An attestation that matches the plan on this engine in everything, the engine's own mounts
// included: what a cell of this kind of host shows.
Attestation MatchingAttestation(const CellPlan& plan, Engine engine);

// Adds one mount at the end: its line in mountinfo and what init found there.
void AddMount(InsideAttestation& seen, const std::string& target, const std::string& options,
              const std::string& type, uint32_t mode, const std::string& root = "/",
              uint64_t device = 99, uint64_t inode = 1);

// Replaces the first `from` in the line of mountinfo whose mount point is `target`. Fails the test
// when it is not there.
void EditMount(InsideAttestation& seen, const std::string& target, const std::string& from,
               const std::string& to);

// What init found at `target`.
MountSeen& SeenAt(InsideAttestation& seen, const std::string& target);

}  // namespace taskcell::cell

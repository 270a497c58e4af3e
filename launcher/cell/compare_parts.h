#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/cell/attestation.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/compare.h"

namespace taskcell::cell {

// Gathers mismatches; the parts of Compare below each look at their own fields and add to it.
class Mismatches {
 public:
  void Add(std::string field, std::string planned, std::string found) {
    list_.push_back({std::move(field), std::move(planned), std::move(found), false});
  }
  void AddLimit(std::string field, std::string planned, std::string found) {
    list_.push_back({std::move(field), std::move(planned), std::move(found), true});
  }
  std::vector<Mismatch> Take() { return std::move(list_); }

 private:
  std::vector<Mismatch> list_;
};

// Ids, groups, capabilities, privileges, environment, names, and what the outside sees of them.
void CompareProcess(const CellPlan& plan, Engine engine, const Attestation& seen,
                    Mismatches& found);
// The witness's rows, its filter, Landlock and limits.
void CompareWitness(const CellPlan& plan, const InsideAttestation& seen, Mismatches& found);
// What the job is left of its caller's settings.
void CompareSettings(Engine engine, const SettingsSeen& seen, Mismatches& found);
// Root, planned mounts, tmpfs, and whatever else is mounted.
void CompareMounts(const CellPlan& plan, Engine engine, const InsideAttestation& seen,
                   Mismatches& found);
// cgroup limits, inside and outside.
void CompareLimits(const Limits& planned, const LimitsSeen& inside, const LimitsSeen& outside,
                   Mismatches& found);
// Other processes and device nodes.
void CompareInventory(const InsideAttestation& seen, Mismatches& found);
// Namespaces, and what others have in them.
void CompareNamespaces(Engine engine, const Attestation& seen, Mismatches& found);
// The session keyring, as far as it can be seen.
void CompareKeyring(const CellPlan& plan, Engine engine, const Attestation& seen,
                    Mismatches& found);
// Interfaces, routes, listener, descriptors.
void CompareChannels(const CellPlan& plan, const InsideAttestation& seen, Mismatches& found);

}  // namespace taskcell::cell

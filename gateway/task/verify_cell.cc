#include "gateway/task/verify_cell.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::chrono::seconds kAttestationWait{10};

Error MismatchError(const std::vector<cell::Mismatch>& mismatches) {
  constexpr std::size_t kShown = 3;
  bool only_limits = true;
  std::string list;
  std::size_t shown = 0;
  for (const cell::Mismatch& mismatch : mismatches) {
    only_limits = only_limits && mismatch.is_limit;
    if (shown++ < kShown) list += Text(list.empty() ? "" : "; ", cell::Describe(mismatch));
  }
  if (mismatches.size() > kShown) list += Text("; and ", mismatches.size() - kShown, " more");
  if (only_limits)
    return Error(Kind::kUnsupported, Text("the cell was made, but its limits are not in force (",
                                          list, "); nothing ran in it"))
        .Coded("resource_limits_unenforced");
  return Error(Kind::kViolation,
               Text("the cell is not what was planned (", list, "); nothing ran in it"))
      .Coded("cell_mismatch");
}

}  // namespace

Result<CellWays> VerifyCell(gate::GateHost& gate, probe::RunningCell& cell, cell::Engine engine,
                            Receipt& receipt, UniqueFd* terminal) {
  gate::GateHost::Arrival arrival =
      TRY(gate.Attest(cell::ListenerCount(cell.plan()),
                      std::chrono::steady_clock::now() + kAttestationWait, cell.plan().terminal));
  receipt.seen.inside = std::move(arrival.inside);
  Result<cell::OutsideAttestation> outside = cell.Observe();
  if (!outside.ok())
    return std::move(outside).error().With("the cell cannot be observed").Coded("cell_mismatch");
  receipt.seen.outside = std::move(outside).value();
  receipt.attested = true;
  if (receipt.seen.outside.host_uids[0] == ::geteuid()) receipt.uid_separation = "none";
  receipt.plan = cell.plan();
  receipt.mismatches = cell::Compare(cell.plan(), engine, receipt.seen);
  if (!receipt.mismatches.empty()) return MismatchError(receipt.mismatches);
  receipt.verified = true;
  if (terminal != nullptr) *terminal = std::move(arrival.terminal);
  CellWays ways;
  ways.listener = std::move(arrival.listener);
  ways.tunnel_listener = std::move(arrival.tunnel_listener);
  return ways;
}

}  // namespace taskcell::gateway

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace taskcell::cell {

// Where a row of the table below has to hold.
enum class DeniedWhere : uint8_t {
  kEverywhere,
  kLandlock,       // the kernel has Landlock
  kLandlockScope,  // Landlock with scopes (ABI 6)
};

// One call a cell must refuse, and the errno values that may come of trying it
// (DeniedCall::result). A call that succeeds is in no row. Most rows name exactly the answer of our
// own filter, and a good part of them would succeed or fail otherwise without it, so that the row
// proves the filter and not the lack of a capability. Calls of other architectures are in no row:
// the same filter, installed whole or not at all, kills who makes one, and the kernel writes each
// such death into the host's log, which nobody wants twice for each cell.
struct DeniedCallRule {
  std::string_view name;
  std::array<int32_t, 4> allowed;  // unused places are 0
  DeniedWhere where = DeniedWhere::kEverywhere;
  bool in_every_profile = false;  // a filter of the user's own cannot leave it open either
};

// Every call the witness tries, in the order in which it does: taskcell-init has one attempt for
// each row, and Compare wants each row's outcome.
std::span<const DeniedCallRule> DeniedCallRules();

inline constexpr int32_t kLandlockScopeAbi = 6;

// True when the rule has to hold on a kernel with this Landlock ABI (0: none).
bool RuleApplies(const DeniedCallRule& rule, int32_t landlock_abi);

// True when `result` is one of the rule's outcomes.
bool IsDenied(const DeniedCallRule& rule, int32_t result);

}  // namespace taskcell::cell

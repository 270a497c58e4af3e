#include "probe/attack/company.h"

#include <algorithm>

namespace taskcell::attack {
namespace {

bool MayShare(const Payload& first, const Payload& next) {
  return first.way == Way::kInChild && next.way == Way::kInChild && first.topic == next.topic;
}

bool IsEscaped(const Row& row) { return row.verdict == Verdict::kEscaped; }

}  // namespace

std::vector<std::span<const Payload* const>> OneCellEach(std::span<const Payload* const> payloads) {
  std::vector<std::span<const Payload* const>> cells;
  while (!payloads.empty()) {
    auto end = std::find_if_not(payloads.begin() + 1, payloads.end(), [&](const Payload* next) {
      return MayShare(*payloads.front(), *next);
    });
    cells.push_back(payloads.first(static_cast<std::size_t>(end - payloads.begin())));
    payloads = payloads.subspan(cells.back().size());
  }
  return cells;
}

bool TellsOfEach(const Trial& together) {
  bool none_through = std::none_of(together.inside.begin(), together.inside.end(),
                                   [](const Attempted& each) { return each.result == 0; });
  return none_through && together.told == together.inside.size() && together.changes.empty();
}

void KeepEscapes(const Trial& together, std::span<Row> alone) {
  for (std::size_t i = 0; i < alone.size(); ++i) {
    if (together.inside[i].result != 0 || IsEscaped(alone[i])) continue;
    alone[i].inside = together.inside[i];
    Judge(alone[i]);
  }
  if (together.changes.empty() || std::any_of(alone.begin(), alone.end(), IsEscaped)) return;
  for (Row& row : alone) {
    row.changes = together.changes;
    Judge(row);
  }
}

}  // namespace taskcell::attack

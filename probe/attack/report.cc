#include "probe/attack/report.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::attack {
namespace {

std::string Told(const Attempted& attempted) {
  return attempted.detail.empty() ? NameOf(attempted.result)
                                  : Text(NameOf(attempted.result), " (", attempted.detail, ")");
}

std::string Expected(const Payload& payload) {
  std::string names;
  for (int32_t result : payload.contained) {
    if (result != 0) names += Text(names.empty() ? "" : " or ", NameOf(result));
  }
  return names;
}

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kContained:
      return "contained";
    case Verdict::kEscaped:
      return "escaped";
    case Verdict::kNotProvable:
      break;
  }
  return "not_provable";
}

void Judge(Row& row) {
  row.why.clear();
  if (!row.changes.empty()) {
    row.verdict = Verdict::kEscaped;
    for (const std::string& change : row.changes)
      row.why += Text(row.why.empty() ? "" : "; ", change);
  } else if (row.inside.result == 0) {
    row.verdict = Verdict::kEscaped;
    row.why = Text("it got through", row.inside.detail.empty() ? "" : ": ", row.inside.detail);
  } else if (row.outside.result != 0) {
    row.verdict = Verdict::kNotProvable;
    row.why = Text("outside it fails too: ", Told(row.outside));
  } else if (!IsContained(*row.payload, row.inside.result)) {
    row.verdict = Verdict::kNotProvable;
    row.why = Text("it failed with ", Told(row.inside), ", where a cell answers ",
                   Expected(*row.payload));
  } else {
    row.verdict = Verdict::kContained;
  }
}

void CountFree(Row& row, uint64_t free_millis) {
  if (row.outside.result != 0 || row.inside.result != kHeldBack || free_millis >= kFreeCpuMillis)
    return;
  row.outside = {kHeldBack, Text("at the same time, ", free_millis, " ms of a second used")};
}

std::size_t Count(const Report& report, Verdict verdict) {
  return static_cast<std::size_t>(
      std::count_if(report.rows.begin(), report.rows.end(),
                    [verdict](const Row& row) { return row.verdict == verdict; }));
}

Verdict Overall(const Report& report) {
  if (Count(report, Verdict::kEscaped) > 0) return Verdict::kEscaped;
  bool strange = std::any_of(report.rows.begin(), report.rows.end(), [](const Row& row) {
    return row.verdict == Verdict::kNotProvable && row.outside.result == 0;
  });
  bool proven = Count(report, Verdict::kContained) > 0;
  if (proven && !strange && !report.refusal) return Verdict::kContained;
  return Verdict::kNotProvable;
}

}  // namespace taskcell::attack

#include "probe/rules/report.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

// ": " and what the first row of a verdict found; "" where there is no such row.
std::string ReasonFor(const Report& report, Verdict verdict) {
  for (const Finding& finding : report.findings) {
    if (finding.verdict == verdict) return ": " + finding.reason;
  }
  return {};
}

std::string MissingLimits(const Report& report) {
  std::string names;
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i) {
    if (report.limits[i].state != cgroup::LimitState::kNo) continue;
    names += Text(names.empty() ? "" : ", ", Name(cgroup::kControllers[i]));
  }
  return names;
}

}  // namespace

std::string_view Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReady:
      return "ready";
    case Verdict::kNote:
      return "note";
    case Verdict::kUnknown:
      return "unknown";
    case Verdict::kLimited:
      return "limited";
    case Verdict::kNot:
      return "not";
  }
  return "";
}

std::string Report::Headline() const {
  std::string unknown = ReasonFor(*this, Verdict::kUnknown);
  switch (verdict) {
    case Verdict::kReady:
    case Verdict::kNote:
      return "ready";
    case Verdict::kLimited:
      // What is not known may be worse than a missing limit.
      if (!unknown.empty())
        return Text("could not tell", unknown, "; limits missing: ", MissingLimits(*this));
      return "ready with limits missing: " + MissingLimits(*this);
    case Verdict::kNot:
      return "not ready" + ReasonFor(*this, verdict);
    case Verdict::kUnknown:
      return "could not tell" + unknown;
  }
  return "";
}

Report Judge(const HostFacts& facts) {
  Report report;
  JudgeLimits(facts, report);
  JudgeCgroupState(facts, report);
  JudgeNamespaces(facts, report);
  JudgeKernel(facts, report);
  JudgeSystemd(facts, report);
  JudgeSecurity(facts, report);
  JudgeEngines(facts, report);
  JudgeResources(facts, report);
  report.verdict = Verdict::kReady;
  for (const Finding& finding : report.findings)
    report.verdict = std::max(report.verdict, finding.verdict);
  if (report.verdict == Verdict::kNote) report.verdict = Verdict::kReady;
  return report;
}

}  // namespace taskcell::probe

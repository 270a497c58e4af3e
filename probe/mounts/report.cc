#include "probe/mounts/report.h"

#include <cerrno>
#include <utility>

namespace taskcell::probe::audit {

std::string_view Name(Standing standing) {
  switch (standing) {
    case Standing::kSafe:
      return "safe";
    case Standing::kUnsafe:
      return "unsafe";
    case Standing::kUnknown:
      return "unknown";
  }
  return "";
}

Standing StandingOf(const std::array<uint64_t, kCodes>& counts, Policy policy) {
  bool unknown = false;
  for (std::size_t i = 0; i < kCodes; ++i) {
    if (counts[i] == 0) continue;
    Severity severity = SeverityOf(static_cast<Code>(i), policy);
    if (severity == Severity::kError || severity == Severity::kWarning) return Standing::kUnsafe;
    unknown = unknown || severity == Severity::kUnknown;
  }
  return unknown ? Standing::kUnknown : Standing::kSafe;
}

bool IsIncomplete(const Report& report) {
  for (std::size_t i = 0; i < kCodes; ++i) {
    if (report.counts[i] > 0 &&
        SeverityOf(static_cast<Code>(i), report.policy) == Severity::kUnknown)
      return true;
  }
  return report.standing == Standing::kUnknown;
}

bool KnowsTheWorst(const Report& report) {
  std::array<uint64_t, kCodes> dropped = report.counts;
  for (const Finding& finding : report.findings) --dropped[static_cast<std::size_t>(finding.code)];
  return StandingOf(dropped, report.policy) == Standing::kSafe;
}

Report FailedReport(std::string directory, Policy policy, const Error& error) {
  Report report;
  report.directory = std::move(directory);
  report.policy = policy;
  report.standing = Standing::kUnknown;
  report.reason = error.kind == Kind::kUsage && error.err == ENOTDIR ? "wrong_kind" : "unreadable";
  report.failure = error.text;
  return report;
}

}  // namespace taskcell::probe::audit

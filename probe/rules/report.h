#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/cgroup/diagnosis.h"
#include "probe/facts/host_facts.h"
#include "probe/rules/finding.h"

namespace taskcell::probe {

// The state of one thing that is not a limit: "yes", "no", "ok", "short", ...
struct Assessment {
  std::string state;
  std::string reason;
  Who who = Who::kNone;
  std::string fix;
};

// What the rules make of a host.
struct Report {
  cgroup::Mode mode = cgroup::Mode::kNone;
  std::array<cgroup::Diagnosis, cgroup::kControllerCount>
      limits;  // in the order of cgroup::kControllers
  cgroup::LimitState overall = cgroup::LimitState::kUnknown;  // of the three together
  Assessment userns;
  Assessment subids;
  std::vector<Finding> findings;
  Verdict verdict = Verdict::kUnknown;

  // "ready", "ready with limits missing: cpu", "not ready: ...", "could not tell: ...", and with
  // limits that are known to be missing "could not tell: ...; limits missing: cpu"
  std::string Headline() const;
};

// Judges a host. Pure.
Report Judge(const HostFacts& facts);

// The families, each adding its rows.
void JudgeLimits(const HostFacts& facts, Report& report);
void JudgeCgroupState(const HostFacts& facts, Report& report);
void JudgeNamespaces(const HostFacts& facts, Report& report);
void JudgeKernel(const HostFacts& facts, Report& report);
void JudgeSystemd(const HostFacts& facts, Report& report);
void JudgeSecurity(const HostFacts& facts, Report& report);
void JudgeEngines(const HostFacts& facts, Report& report);
void JudgeResources(const HostFacts& facts, Report& report);

// Where a limit cannot be enforced because the user's service manager is kept from running, makes
// that the cause. Pure.
void BlameUserManager(const HostFacts& facts, cgroup::Controller controller,
                      cgroup::Diagnosis& diagnosis);

// The value of a hardening setting of the unit this process is in where it is on, else "". Pure.
std::string BlockingSetting(const HostFacts& facts, std::string_view name);

// The same as evidence, with the file it stands in; only where it is on. Pure.
Evidence BlockingEvidence(const HostFacts& facts, std::string_view name);

}  // namespace taskcell::probe

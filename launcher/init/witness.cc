#include "launcher/init/witness.h"

#include <sys/resource.h>

#include "launcher/base/text.h"
#include "launcher/cell/denied_calls.h"
#include "launcher/cell/wire.h"
#include "launcher/init/child_report.h"
#include "launcher/init/denied_attempts.h"
#include "launcher/sys/file.h"
#include "launcher/sys/job_control.h"
#include "launcher/sys/seccomp_install.h"
#include "launcher/sys/self.h"

namespace taskcell::init {
namespace {

constexpr std::size_t kMaxRows = 256;
constexpr std::size_t kMaxNameBytes = 64;

struct Findings {
  std::vector<cell::DeniedCall> calls;
  uint32_t seccomp_mode = 0;
  uint64_t nofile = 0;
  uint64_t core = 0;
};

template <typename Io, typename Value>
void Fields(Io& io, Value& findings) {
  io.List(findings.calls, kMaxRows, [](auto& each, auto& call) {
    each.String(call.name, kMaxNameBytes);
    each.Number(call.result);
  });
  io.Number(findings.seccomp_mode);
  io.Number(findings.nofile);
  io.Number(findings.core);
}

// In the witness. The state comes first: should one of the calls succeed, nothing read after it
// would mean anything.
Result<Findings> Look(int landlock_abi) {
  Findings findings;
  findings.seccomp_mode = static_cast<uint32_t>(TRY(sys::SeccompMode()));
  findings.nofile = TRY(sys::ResourceLimit(RLIMIT_NOFILE));
  findings.core = TRY(sys::ResourceLimit(RLIMIT_CORE));
  for (const cell::DeniedCallRule& rule : cell::DeniedCallRules()) {
    if (!cell::RuleApplies(rule, landlock_abi)) continue;
    findings.calls.push_back({std::string(rule.name), TRY(AttemptDeniedCall(rule.name))});
  }
  return findings;
}

Status Testify(int landlock_abi, int report_fd, std::string_view& stage) {
  stage = "witness";
  Findings findings = TRY(Look(landlock_abi));
  cell::WireWriter writer;
  Fields(writer, findings);
  std::string report(1, kWitnessReport);
  report += writer.Take();
  return sys::WriteAll(report_fd, report);
}

}  // namespace

Status CallWitness(const Confinement& confinement, cell::InsideAttestation& seen) {
  auto prepare = [](std::string_view& stage) -> Status {
    stage = "session";
    TRY(sys::StartSession());
    return sys::ReleaseSignals();
  };
  auto body = [&](int report_fd, std::string_view& stage) {
    return Testify(confinement.landlock_abi, report_fd, stage);
  };
  Confined witness = TRY(StartConfined(confinement, prepare, body));
  std::string report = TRY(ReadReport(witness.report.get(), kWitnessTimeoutMs));
  if (report.starts_with(kRefusalReport)) return RefusalIn(report);
  if (!report.starts_with(kWitnessReport)) {
    return Error(Kind::kViolation, "the witness died before it could report");
  }
  cell::WireReader reader(std::string_view(report).substr(1));
  Findings findings;
  Fields(reader, findings);
  TRY(reader.Finish("the witness's report"));
  seen.denied_calls = std::move(findings.calls);
  seen.witness_seccomp_mode = findings.seccomp_mode;
  seen.witness_nofile = findings.nofile;
  seen.witness_core = findings.core;
  seen.landlock_abi = confinement.landlock_abi;
  // The witness reports only after every step of its confinement succeeded.
  seen.landlock_applied = confinement.landlock_abi > 0;
  return Ok();
}

}  // namespace taskcell::init

#include "launcher/init/witness.h"

#include <limits.h>
#include <sys/resource.h>

#include <vector>

#include "launcher/cell/denied_calls.h"
#include "launcher/cell/gate_protocol.h"
#include "launcher/cell/wire.h"
#include "launcher/init/child_report.h"
#include "launcher/init/denied_attempts.h"
#include "launcher/init/job_setup.h"
#include "launcher/sys/file.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/seccomp_install.h"

namespace taskcell::init {
namespace {

constexpr int kRefusedStatus = 125;
constexpr std::size_t kMaxRows = 256;
constexpr std::size_t kMaxNameBytes = 64;

struct Findings {
  cell::SettingsSeen settings;
  std::vector<cell::DeniedCall> calls;
  uint32_t seccomp_mode = 0;
  uint64_t nofile = 0;
  uint64_t core = 0;
  uint64_t file_bytes = 0;
  sys::Usage usage;
};

template <typename Io, typename Value>
void Fields(Io& io, Value& findings) {
  io.List(findings.calls, kMaxRows, [](auto& each, auto& call) {
    each.String(call.name, kMaxNameBytes);
    each.Number(call.result);
    each.Number(call.by_filter);
  });
  io.Number(findings.seccomp_mode);
  io.Number(findings.nofile);
  io.Number(findings.core);
  io.Number(findings.file_bytes);
  cell::SettingsFields(io, findings.settings);
  io.Number(findings.usage.user_us);
  io.Number(findings.usage.system_us);
}

// The state comes first: should one of the calls succeed, nothing read after it would mean
// anything.
Result<Findings> Look(const Confinement& confinement) {
  Findings findings;
  findings.seccomp_mode = static_cast<uint32_t>(TRY(sys::SeccompMode()));
  findings.nofile = TRY(sys::ResourceLimit(RLIMIT_NOFILE));
  findings.core = TRY(sys::ResourceLimit(RLIMIT_CORE));
  findings.file_bytes = TRY(sys::ResourceLimit(RLIMIT_FSIZE));
  for (const cell::DeniedCallRule& rule : cell::DeniedCallRules()) {
    if (!cell::RuleApplies(rule, confinement.landlock_abi)) continue;
    Attempted attempted = TRY(AttemptDeniedCall(rule.name, confinement.filter));
    findings.calls.push_back({std::string(rule.name), attempted.result, attempted.by_filter});
  }
  findings.usage = TRY(sys::OwnUsage());
  return findings;
}

// In the witness.
class Life {
 public:
  Life(const Confinement& confinement, cell::JobStdio stdio, JobStreams streams, UniqueFd report,
       UniqueFd orders)
      : confinement_(confinement),
        stdio_(stdio),
        streams_(std::move(streams)),
        report_(std::move(report)),
        orders_(std::move(orders)) {}

  [[noreturn]] void Live() {
    Status done = Do();
    if (done.ok()) sys::ExitNow(0);
    std::string report(1, kRefusalReport);
    report += cell::EncodeRefusal({std::string(stage_), done.error().err, done.error().text});
    (void)sys::WriteAll(report_.get(), report);  // ignoring: who should be told is gone
    sys::ExitNow(kRefusedStatus);
  }

 private:
  Status Do() {
    TRY(TakeStreams(stdio_, streams_, stage_));
    streams_ = JobStreams();
    cell::SettingsSeen settings;
    TRY(ConfineSelf(confinement_, stage_, settings));
    stage_ = "witness";
    TRY(Testify(settings));
    stage_ = "job";
    std::string bytes = TRY(sys::ReadAll(orders_.get(), cell::kMaxJobBytes));
    if (bytes.empty()) return Ok();  // there is none: init was told so, or is gone
    cell::Job job = TRY(cell::ParseJob(bytes));
    return ExecuteJob(job, confinement_.landlock_abi, report_.get(), stage_);
  }

  Status Testify(const cell::SettingsSeen& settings) {
    Findings findings = TRY(Look(confinement_));
    findings.settings = settings;
    cell::WireWriter writer;
    Fields(writer, findings);
    std::string report(1, kFindingsReport);
    report += writer.Take();
    if (report.size() > PIPE_BUF) return Error(Kind::kInternal, "findings of more than PIPE_BUF");
    return sys::WriteAll(report_.get(), report);
  }

  const Confinement& confinement_;
  cell::JobStdio stdio_;
  JobStreams streams_;
  UniqueFd report_;
  UniqueFd orders_;
  std::string_view stage_ = "start";
};

}  // namespace

Result<Witness> Witness::Start(const Confinement& confinement, cell::JobStdio stdio,
                               UniqueFd terminal) {
  Relay relay;
  JobStreams streams;
  if (stdio == cell::JobStdio::kRelay) relay = TRY(Relay::Make(streams));
  if (stdio == cell::JobStdio::kTerminal) {
    streams.out = TRY(sys::Duplicate(terminal.get()));
    streams.err = TRY(sys::Duplicate(terminal.get()));
    streams.in = std::move(terminal);
  }
  sys::Pipe report = TRY(sys::MakePipe());
  sys::Pipe orders = TRY(sys::MakePipe());
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  sys::PopulateNextPages();
  if (cloned.in_child) {
    // Its own end, or it would never see the end of the orders.
    orders.write_end.Reset();
    Life(confinement, stdio, std::move(streams), std::move(report.write_end),
         std::move(orders.read_end))
        .Live();
  }
  Witness witness(std::move(cloned.child), std::move(relay), std::move(report.read_end),
                  std::move(orders.write_end), confinement);
  if (stdio == cell::JobStdio::kTerminal) witness.terminal_ = std::move(streams.in);
  return witness;
}

Status Witness::Testify(cell::InsideAttestation& seen) {
  std::string report = TRY(ReadReport(report_.get(), kWitnessTimeoutMs));
  if (report.starts_with(kRefusalReport)) return RefusalIn(report);
  if (!report.starts_with(kFindingsReport) && has_own_filter_) {
    return Error(
        Kind::kConfig,
        "the profile kills what the cell's own start needs, which is to ask for its limits "
        "and its filter's mode (prlimit64, prctl), to read and write, and to try what is "
        "denied. Let the profile answer those with an error (SCMP_ACT_ERRNO) or allow them; "
        "with SCMP_ACT_LOG in place of the killing the kernel's log names the call");
  }
  if (!report.starts_with(kFindingsReport)) {
    return Error(Kind::kViolation, "the witness died before it could report");
  }
  cell::WireReader reader(std::string_view(report).substr(1));
  Findings findings;
  Fields(reader, findings);
  TRY(reader.Finish("the witness's report"));
  usage_ = findings.usage;
  seen.denied_calls = std::move(findings.calls);
  seen.witness_seccomp_mode = findings.seccomp_mode;
  seen.witness_nofile = findings.nofile;
  seen.witness_core = findings.core;
  seen.witness_file_bytes = findings.file_bytes;
  seen.settings = findings.settings;
  seen.landlock_abi = landlock_abi_;
  // The witness reports only after every step of its confinement succeeded.
  seen.landlock_applied = landlock_abi_ > 0;
  return Ok();
}

Result<std::string> Witness::Become(const cell::Job& job) {
  // ignoring: a witness that is gone is found out about by its report, or by reaping it
  (void)sys::WriteAll(orders_.get(), cell::EncodeJob(job));
  orders_.Reset();
  std::string report = TRY(ReadReport(report_.get(), kStartTimeoutMs));
  report_.Reset();
  return report.empty() ? report : report.substr(1);
}

}  // namespace taskcell::init

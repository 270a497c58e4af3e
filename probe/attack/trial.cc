#include "probe/attack/trial.h"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/gate/gate_host.h"
#include "launcher/native/request.h"
#include "launcher/sys/file.h"
#include "launcher/sys/signals.h"
#include "probe/attack/bystander.h"
#include "probe/attack/free_process.h"
#include "probe/attack/outcome.h"
#include "probe/live/leftovers.h"

namespace taskcell::attack {
namespace {

using Clock = gate::GateHost::Clock;

constexpr std::chrono::milliseconds kAttestationWait{10'000};
constexpr std::chrono::milliseconds kHandOverWait{5'000};
constexpr uint64_t kLongestMs = 10'000;
constexpr uint64_t kForEachMoreMs = 1'000;
constexpr int kExchangedTries = 40;
// How much later than the cell itself its deadline is kept from outside.
constexpr std::chrono::milliseconds kOutsideMargin{50};

// Keeps the lines that tell the outcomes, and cancels a job that prints more than it may.
class AttackerOutput : public gate::OutputSink {
 public:
  AttackerOutput(std::span<const Payload* const> payloads, uint64_t bound)
      : outcomes(payloads.size()), payloads_(payloads), bound_(bound) {}

  bool OnStdout(std::string_view bytes) override {
    total_ += bytes.size();
    if (total_ > bound_) return false;
    for (char c : bytes) {
      if (c == '\n') {
        TakeLine();
      } else if (line_.size() < kMaxLineBytes) {
        line_ += c;
      }
    }
    return true;
  }
  bool OnStderr(std::string_view bytes) override {
    errors += bytes.substr(0, kMaxLineBytes - std::min(errors.size(), kMaxLineBytes));
    return true;
  }

  std::vector<std::optional<Attempted>> outcomes;  // of each payload
  std::string errors;

 private:
  static constexpr std::size_t kMaxLineBytes = 4096;

  void TakeLine() {
    for (std::size_t i = 0; i < payloads_.size(); ++i) {
      Result<Attempted> told = ParseOutcome(line_, payloads_[i]->name);
      if (told.ok()) outcomes[i] = std::move(told).value();
    }
    line_.clear();
  }

  std::span<const Payload* const> payloads_;
  uint64_t bound_;
  uint64_t total_ = 0;
  std::string line_;
};

cell::Job JobFor(std::span<const Payload* const> payloads, const Targets& targets) {
  cell::Job job;
  job.argv = {Text(kToolsInside, "/attacker")};
  for (std::string& word : TargetWords(targets)) job.argv.push_back(std::move(word));
  for (const Payload* payload : payloads) job.argv.emplace_back(payload->name);
  job.environment = {"PATH=/"};
  job.working_directory = "/";
  job.stdio = cell::JobStdio::kRelay;
  job.timeout_ms = payloads.front()->way == Way::kDeadline
                       ? targets.deadline_ms
                       : kLongestMs + (payloads.size() - 1) * kForEachMoreMs;
  return job;
}

// What a job that said nothing came to: it was ended, by whom shows in how.
Attempted Silent(const gate::JobEnd& end, const std::string& errors) {
  if (end.outcome == gate::JobOutcome::kRefused)
    return {end.refusal.err, Text("the job was not started: ", end.refusal.text)};
  if (end.outcome != gate::JobOutcome::kExited) return {EIO, "process 1 of the cell went away"};
  if (end.cancelled) return {-SIGKILL, "ended from outside"};
  if (end.exit.reason == cell::ExitReason::kDeadline || end.deadline_passed)
    return {-SIGKILL, "ended at the deadline"};
  if (end.exit.signal != 0) return {-end.exit.signal, "killed"};
  if (end.exit.code == 0) return {kEndedAlong, "ended with the job"};
  return {EIO, Text("exit status ", end.exit.code, " ", Printable(errors))};
}

bool SameLimits(const cell::LimitsSeen& a, const cell::LimitsSeen& b) {
  return a.memory_bytes == b.memory_bytes && a.memory_and_swap_bytes == b.memory_and_swap_bytes &&
         a.pids == b.pids && a.cpu_quota_us == b.cpu_quota_us && a.cpu_period_us == b.cpu_period_us;
}

Result<cell::Attestation> Attest(gate::GateHost& gate, probe::RunningCell& cell) {
  cell::Attestation seen;
  // Nobody serves its listeners.
  seen.inside =
      TRY(gate.Attest(cell::ListenerCount(cell.plan()), Clock::now() + kAttestationWait)).inside;
  seen.outside = TRY(cell.Observe());
  return seen;
}

// None where this user lacks something already, with a warning that says so.
std::optional<Bystander> StartBystander(const Payload& payload, Trial& trial) {
  if (payload.way != Way::kQuota) return std::nullopt;
  Result<Bystander> started = Bystander::Start();
  if (started.ok()) return std::move(started).value();
  trial.warnings.push_back(Text(payload.name, ": ", started.error().text));
  return std::nullopt;
}

// To the outcome of the one payload there was.
void TakeSeen(const Bystander::Seen& seen, Trial& trial) {
  if (!seen.denied.empty()) trial.changes.push_back(Describe(seen));
  std::string& detail = trial.inside.front().detail;
  detail += Text(detail.empty() ? "" : "; ", Describe(seen));
}

Status RunIn(probe::RunningCell& cell, cell::Engine engine, World& world,
             std::span<const Payload* const> payloads, Trial& trial) {
  gate::GateHost gate = TRY(gate::GateHost::Open(cell.TakeGate()));
  cell::Attestation seen = TRY(Attest(gate, cell));
  for (const cell::Mismatch& mismatch : cell::Compare(cell.plan(), engine, seen))
    trial.differences.push_back(cell::Describe(mismatch));
  const Payload& first = *payloads.front();
  Targets targets = TargetsOf(first, world.inside());
  cell::Job job = JobFor(payloads, targets);
  AttackerOutput output(payloads, targets.output_bytes);
  TRY(world.Settle());
  std::optional<FreeProcess> free;
  if (first.way == Way::kBeside) free = TRY(FreeProcess::Start());
  std::optional<Bystander> bystander = StartBystander(first, trial);
  TRY(gate.HandOver(job, Clock::now() + kHandOverWait));
  auto deadline = Clock::now() + std::chrono::milliseconds(job.timeout_ms) + kOutsideMargin;
  gate::JobEnd end = TRY(gate.Pump(output, deadline));
  if (free) trial.free_millis = TRY(free->End());
  for (const std::optional<Attempted>& outcome : output.outcomes) {
    trial.inside.push_back(outcome ? *outcome : Silent(end, output.errors));
    if (outcome) ++trial.told;
  }
  trial.changes = world.Changes();
  if (bystander) TakeSeen(TRY(bystander->End()), trial);
  // With process 1 gone there is no cgroup left to look at.
  Result<cell::OutsideAttestation> after = cell.Observe();
  if (after.ok() && !SameLimits(after->limits, seen.outside.limits))
    trial.changes.push_back("the limits of the cell's cgroup changed");
  (void)gate.Done();  // ignoring: the cell is removed either way
  return Ok();
}

// A cell of a hostile root: there must be none, for the link's sake and for nothing else. Where
// there is one, its attestation tells whether a mount went astray; where the names change all the
// time it may tell so of one that did not, and no task gets such a cell either.
Result<Attempted> MakeOfRoot(probe::CellEngine& engine, const live::Setting& setting, Way way,
                             const cell::CellPlan& plan) {
  Result<std::unique_ptr<probe::RunningCell>> made = engine.Make(plan, setting.places);
  if (!made.ok()) {
    const std::string& text = made.error().text;
    if (text.find("symbolic link") != text.npos) return Attempted{ELOOP, text};
    // Before it got to the target it saw that something in the root moves: no link was met yet.
    bool too_early = way == Way::kExchanged && text.find("was changed while") != text.npos;
    return Attempted{too_early ? kNoEffect : EIO, text};
  }
  probe::RunningCell& cell = *made.value();
  gate::GateHost gate = TRY(gate::GateHost::Open(cell.TakeGate()));
  Attempted attempted = {kNoEffect, "the cell was made, with every mount in its place"};
  for (const cell::Mismatch& mismatch :
       cell::Compare(cell.plan(), engine.kind(), TRY(Attest(gate, cell)))) {
    if (mismatch.field.starts_with("mount") || mismatch.field.starts_with("tmpfs"))
      attempted = {way == Way::kExchanged ? kNoEffect : 0, cell::Describe(mismatch)};
  }
  TRY(cell.Remove());
  return attempted;
}

Result<Trial> TryRoot(probe::CellEngine& engine, const live::Setting& setting, World& world,
                      const Payload& payload, cell::CellPlan plan) {
  plan.root = cell::RootKind::kRootfs;
  plan.root_source = Text(world.outside().roots, "/", payload.name);
  struct stat info = TRY(sys::StatAt(AT_FDCWD, plan.root_source));
  plan.root_device = info.st_dev;
  plan.root_inode = info.st_ino;
  TRY(world.Settle());
  Trial trial;
  // A link that is there half of the time is met by one of so many.
  const int most = payload.way == Way::kExchanged ? kExchangedTries : 1;
  for (int tries = 0; tries < most; ++tries) {
    plan.run_id = TRY(native::MakeRunId());
    trial.inside = {TRY(MakeOfRoot(engine, setting, payload.way, plan))};
    if (trial.inside.front().result != kNoEffect) break;
  }
  trial.changes = world.Changes();
  return trial;
}

}  // namespace

cell::CellPlan PlanAttacked(const live::Setting& setting, const Targets& targets) {
  live::Asked asked;
  asked.limits.memory_bytes = targets.memory_bytes;
  asked.limits.pids = targets.pids;
  asked.limits.cpu_millis = targets.cpu_millis;
  asked.limits.nofile = targets.nofile;
  cell::CellPlan plan = live::PlanProbe(asked, setting.uid, setting.gid);
  plan.home_label = live::kProbeHomeLabel;
  plan.root = setting.root;
  plan.root_source = setting.root_source;
  plan.mounts = setting.mounts;
  return plan;
}

Result<Trial> TryInside(probe::CellEngine& engine, const live::Setting& setting, World& world,
                        std::span<const Payload* const> payloads) {
  const Payload& first = *payloads.front();
  cell::CellPlan plan = PlanAttacked(setting, TargetsOf(first, world.inside()));
  plan.run_id = TRY(native::MakeRunId());
  plan.deadline_unix_ms = sys::UnixMs() + live::kAbandonedAfterMs;
  if (IsOfRoot(first)) return TryRoot(engine, setting, world, first, std::move(plan));
  std::unique_ptr<probe::RunningCell> cell = TRY(engine.Make(std::move(plan), setting.places));
  Trial trial;
  for (const std::string& warning : cell->warnings())
    trial.warnings.push_back(Text("the engine warned: ", Printable(warning)));
  Status ran = RunIn(*cell, engine.kind(), world, payloads, trial);
  Status removed = cell->Remove();
  // A process that is left keeps the cgroup.
  if (!removed.ok()) trial.changes.push_back(Text("left behind: ", removed.error().text));
  if (ran.ok()) return trial;
  return std::move(ran).error();
}

}  // namespace taskcell::attack

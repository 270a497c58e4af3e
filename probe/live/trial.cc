#include "probe/live/trial.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::live {
namespace {

using Clock = gate::GateHost::Clock;

constexpr std::chrono::milliseconds kAttestationWait{10'000};
constexpr std::chrono::milliseconds kHandOverWait{5'000};
// How much later than the cell itself its deadline is kept from outside.
constexpr std::chrono::milliseconds kOutsideMargin{50};
constexpr std::size_t kMaxErrorBytes = 1024;
constexpr std::size_t kMaxLineBytes = 4096;

// Counts the output, keeps the lines that can be findings, and stops the job past the bound.
class BreakerOutput : public gate::OutputSink {
 public:
  explicit BreakerOutput(uint64_t bound) : bound_(bound) {}

  bool OnStdout(std::string_view bytes) override {
    output_bytes += bytes.size();
    if (output_bytes > bound_) return false;
    for (char c : bytes) {
      if (c == '\n') {
        TakeLine();
      } else if (line_.size() <= kMaxLineBytes) {
        line_ += c;
      }
    }
    return true;
  }

  bool OnStderr(std::string_view bytes) override {
    errors += bytes.substr(0, kMaxErrorBytes - std::min(errors.size(), kMaxErrorBytes));
    return true;
  }

  uint64_t output_bytes = 0;
  std::vector<Finding> findings;
  std::string errors;

 private:
  void TakeLine() {
    Result<Finding> finding = ParseFinding(line_);
    line_.clear();
    if (finding.ok()) findings.push_back(std::move(finding).value());
  }

  uint64_t bound_;
  std::string line_;
};

cell::Job JobFor(const TrialOrders& orders) {
  cell::Job job;
  job.argv = {kBreakerInside};
  for (const Attempt& attempt : orders.attempts) job.argv.push_back(Word(attempt));
  job.environment = {"PATH=/"};
  job.working_directory = "/";
  job.stdio = cell::JobStdio::kRelay;
  job.timeout_ms = orders.deadline_ms;
  return job;
}

Status RunIn(probe::RunningCell& cell, cell::Engine engine, const TrialOrders& orders,
             Trial& trial) {
  gate::GateHost gate = TRY(gate::GateHost::Open(cell.TakeGate()));
  trial.seen.inside = TRY(gate.Attest(0, Clock::now() + kAttestationWait)).inside;
  trial.seen.outside = TRY(cell.Observe());
  trial.mismatches = cell::Compare(cell.plan(), engine, trial.seen);
  trial.reported = TRY(cell.Reported());
  BreakerOutput output(orders.output_bytes);
  TRY(gate.HandOver(JobFor(orders), Clock::now() + kHandOverWait));
  auto deadline = Clock::now() + std::chrono::milliseconds(orders.deadline_ms) + kOutsideMargin;
  trial.end = TRY(gate.Pump(output, deadline));
  trial.findings = std::move(output.findings);
  trial.output_bytes = output.output_bytes;
  trial.errors = std::move(output.errors);
  Result<cgroup::Events> events = cell.ReadEvents();
  if (events.ok()) {
    trial.events = std::move(events).value();
  } else {
    trial.warnings.push_back(Text("the kernel's counters: ", events.error().text));
  }
  (void)gate.Done();  // ignoring: the cell is removed either way
  return Ok();
}

}  // namespace

Result<Trial> RunTrial(probe::CellEngine& engine, const probe::CellPlaces& places,
                       const TrialOrders& orders) {
  std::unique_ptr<probe::RunningCell> cell = TRY(engine.Make(orders.plan, places));
  Trial trial;
  for (const std::string& warning : cell->warnings())
    trial.warnings.push_back(Text("the engine warned: ", Printable(warning)));
  Status ran = RunIn(*cell, engine.kind(), orders, trial);
  Status removed = cell->Remove();
  std::string left = removed.ok() ? "" : Text("left behind: ", removed.error().text);
  if (!ran.ok()) {
    Error error = std::move(ran).error();
    if (!left.empty()) error.text += "; and " + left;
    return error;
  }
  if (!left.empty()) trial.warnings.push_back(std::move(left));
  return trial;
}

}  // namespace taskcell::live

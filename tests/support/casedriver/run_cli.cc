#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "gateway/config/sandbox_settings.h"
#include "gateway/runtimes/plan_job.h"
#include "gateway/task/host_surroundings.h"
#include "gateway/task/run_directory.h"
#include "gateway/task/run_job.h"
#include "launcher/base/text.h"
#include "launcher/cell/compare.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"
#include "probe/cells/native_engine.h"
#include "tests/support/casedriver/verbs.h"

namespace taskcell::casedriver {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAttestationWait{10};
constexpr int kInputWaitMs = 1000;  // for more of it
constexpr std::size_t kMaxInputBytes = 4U << 20U;

// Nothing where standard input is a terminal or does not go on.
std::string ReadInput() {
  std::string input;
  if (::isatty(STDIN_FILENO) != 0) return input;
  std::array<char, 65536> chunk;
  while (input.size() < kMaxInputBytes) {
    Result<short> ready = sys::Poll(STDIN_FILENO, POLLIN, kInputWaitMs);
    if (!ready.ok() || ready.value() == 0) return input;
    Result<std::size_t> got = sys::Read(STDIN_FILENO, chunk);
    if (!got.ok() || got.value() == 0) return input;
    input.append(chunk.data(), got.value());
  }
  return input;
}

// A cell as a task of the default settings has, with the directory `here` in it.
Result<cell::CellPlan> Plan(probe::CellEngine& engine, const std::string& here, int here_fd) {
  const gateway::SandboxSettings settings;
  cell::CellPlan plan;
  plan.run_id = TRY(gateway::MakeRunId());
  plan.agent = "run-cli";
  probe::CellIds ids = TRY(engine.ChooseIds(plan.run_id));
  plan.uid = ids.uid;
  plan.gid = ids.gid;
  plan.limits.memory_bytes = settings.memory_bytes;
  plan.limits.pids = settings.pids;
  plan.limits.cpu_millis = settings.cpu_millis;
  plan.network = cell::NetworkMode::kProvider;
  plan.tmpfs.push_back({"/tmp", settings.tmp_bytes, 01777, true});
  plan.tmpfs.push_back({"/workspace", settings.workspace_bytes, 0700, true});
  struct stat info = TRY(sys::Stat(here_fd));
  plan.mounts.push_back({here, here, cell::EntryKind::kDirectory, info.st_dev, info.st_ino, false});
  return plan;
}

Result<cell::Job> MakeJob(const Arguments& arguments, const std::string& here,
                          uint64_t timeout_ms) {
  cell::Job job;
  job.argv = arguments.rest;
  if (std::string file(arguments.Get("argument-file")); !file.empty())
    job.argv.push_back(TRY(sys::ReadFile(AT_FDCWD, file, kMaxInputBytes)));
  job.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", Text("HOME=", gateway::kJobHome),
                     Text("TMPDIR=", gateway::kJobTmp), "LANG=C.UTF-8"};
  job.home = gateway::kJobHome;
  job.directories = {std::string(gateway::kJobTmp)};
  job.working_directory = here;
  job.stdio = cell::JobStdio::kRelay;
  job.input = ReadInput();
  job.timeout_ms = timeout_ms;
  TRY(cell::CheckJob(job));
  return job;
}

// The cell's listener, once the cell is what was planned.
Result<UniqueFd> Verify(gate::GateHost& gate, probe::RunningCell& cell) {
  gate::GateHost::Arrival arrival = TRY(gate.Attest(1, Clock::now() + kAttestationWait));
  cell::Attestation seen;
  seen.inside = std::move(arrival.inside);
  seen.outside = TRY(cell.Observe());
  std::vector<cell::Mismatch> found = cell::Compare(cell.plan(), cell::Engine::kNative, seen);
  if (found.empty()) return std::move(arrival.listener);
  return Error(Kind::kViolation, Describe(found[0])).Coded("cell_mismatch");
}

Result<gateway::TaskAnswer> Run(const Arguments& arguments) {
  gateway::RunTerms terms;
  terms.runtime = gateway::Runtime::kClaude;
  if (std::string_view family = arguments.Get("runtime"); !family.empty())
    terms.runtime = TRY(gateway::ParseFamily(family));
  terms.max_turns = gateway::SandboxSettings().max_turns;
  terms.timeout_ms = ParseUnsigned(arguments.Get("timeout-ms")).value_or(0);
  if (terms.timeout_ms == 0 || arguments.rest.empty())
    return Error(Kind::kUsage, "run-cli needs --timeout-ms N -- ARGV");
  terms.deadline = Clock::now() + std::chrono::milliseconds(terms.timeout_ms);

  UniqueFd here_fd = TRY(sys::Open(".", O_PATH | O_DIRECTORY));
  const std::string here = TRY(sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", here_fd.get())));
  const cell::Job job = TRY(MakeJob(arguments, here, terms.timeout_ms));
  std::unique_ptr<gateway::HostSurroundings> host = TRY(gateway::HostSurroundings::Make());
  const gateway::Surroundings surroundings = host->For(-1);
  gateway::Broker* broker = TRY(surroundings.broker());
  probe::NativeEngine engine;
  probe::CellPlaces places;
  places.launch_program = surroundings.programs.launch;
  cell::CellPlan plan = TRY(Plan(engine, here, here_fd.get()));
  std::unique_ptr<probe::RunningCell> cell = TRY(engine.Make(std::move(plan), places));
  gate::GateHost gate = TRY(gate::GateHost::Open(cell->TakeGate()));
  UniqueFd listener = TRY(Verify(gate, *cell));
  std::unique_ptr<gateway::BrokerCell> way = TRY(broker->Attach(std::move(listener), {}));
  gateway::Evidence evidence = TRY(gateway::RunJob(gate, *cell, *way, job, terms));
  TRY(cell->Remove());
  uint64_t& calls = evidence.egress.totals.model_calls;
  calls = std::max<uint64_t>(calls, 1);
  return gateway::AnswerOf(gateway::Classify(evidence));
}

}  // namespace

int RunCli(const Arguments& arguments) {
  Result<gateway::TaskAnswer> answer = Run(arguments);
  if (!answer.ok() && answer.error().kind == Kind::kUsage) return Complain(answer.error().text);
  return PrintAnswer(answer.ok() ? answer.value() : gateway::AnswerFor(answer.error()), true);
}

}  // namespace taskcell::casedriver

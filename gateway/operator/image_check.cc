#include "gateway/operator/image_check.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "gateway/config/agent_config.h"
#include "gateway/operator/own_cell.h"
#include "gateway/runtimes/plan_job.h"
#include "gateway/task/admission.h"
#include "gateway/task/cancel.h"
#include "gateway/task/plan_task.h"
#include "gateway/task/platform.h"
#include "gateway/task/relay.h"
#include "launcher/base/text.h"
#include "launcher/sys/self.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kLoopFamily = "openai-compat";
constexpr uint64_t kVersionTimeoutMs = 30'000;
constexpr uint64_t kSetupAllowanceMs = 60'000;

// The beginning of what a program says; more of it ends the program.
class FirstWords : public gate::OutputSink {
 public:
  bool OnStdout(std::string_view bytes) override { return Take(out_, bytes); }
  bool OnStderr(std::string_view bytes) override { return Take(err_, bytes); }

  // The first line that has something in it, for one line of a terminal.
  std::string Line() const {
    for (const std::string* text : {&out_, &err_})
      for (std::string_view line : Split(*text, '\n'))
        if (!Trim(line).empty()) return Printable(Trim(line).substr(0, kMaxLine));
    return "";
  }

 private:
  static constexpr std::size_t kMaxKept = 64U << 10U;
  static constexpr std::size_t kMaxLine = 120;

  static bool Take(std::string& kept, std::string_view bytes) {
    kept += bytes.substr(0, kMaxKept - kept.size());
    return kept.size() < kMaxKept;
  }

  std::string out_;
  std::string err_;
};

cell::Job VersionJob(const std::string& path) {
  cell::Job job;
  job.argv = {path, "--version"};
  job.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", Text("HOME=", kJobHome),
                     Text("TMPDIR=", kJobTmp), "LANG=C.UTF-8", "TZ=UTC"};
  job.working_directory = std::string(kJobDirectory);
  job.home = std::string(kJobHome);
  job.directories.push_back(std::string(kJobTmp));
  job.stdio = cell::JobStdio::kRelay;
  job.timeout_ms = kVersionTimeoutMs;
  return job;
}

void Judge(const Evidence& evidence, const FirstWords& words, CheckedProgram& program) {
  using State = CheckedProgram::State;
  const gate::JobEnd& end = evidence.end;
  const std::string line = words.Line();
  if (!evidence.transport_error.empty()) {
    program.state = State::kFails;
    program.text = evidence.transport_error;
  } else if (end.outcome == gate::JobOutcome::kRefused) {
    program.state = IsForWantOfProgram(end.refusal) ? State::kMissing : State::kFails;
    program.text = Printable(end.refusal.text);
  } else if (end.outcome != gate::JobOutcome::kExited || end.deadline_passed ||
             end.exit.reason != cell::ExitReason::kExited) {
    program.state = State::kFails;
    program.text = Text("did not tell its version within ", kVersionTimeoutMs / 1000, " s");
  } else if (end.exit.signal != 0 || end.exit.code != 0) {
    program.state = State::kFails;
    program.text = Text(end.exit.signal != 0 ? Text("was killed by signal ", end.exit.signal)
                                             : Text("exit status ", end.exit.code),
                        line.empty() ? "" : ": ", line);
  } else {
    program.state = State::kRuns;
    program.text = line.empty() ? "says no version" : line;
  }
}

class Check {
 public:
  Check(const Home& home, const Terms& terms, probe::CellEngine& engine, Surroundings& surroundings)
      : home_(home), terms_(terms), engine_(engine), surroundings_(surroundings) {}

  Status Try(CheckedProgram& program) {
    const std::string run_id = TRY(MakeRunId());
    const probe::CellIds ids = TRY(engine_.ChooseIds(run_id));
    RunDirectory run = TRY(RunDirectory::Make(home_, run_id));
    cell::CellPlan plan =
        EmptyPlan(home_, "image-check", run_id, kVersionTimeoutMs + kSetupAllowanceMs);
    plan.uid = ids.uid;
    plan.gid = ids.gid;
    plan.network = cell::NetworkMode::kNone;
    PlanRoot(engine_.kind(), terms_.settings.image, terms_.root, plan);
    PlanLimits(terms_.settings, plan);
    Status tried = InOwnCell({home_, run, engine_, surroundings_}, std::move(plan),
                             [&](VerifiedCell& verified) { return Start(verified.gate, program); });
    Status removed = run.Remove();
    run.RemoveEmptyParents();
    if (!tried.ok()) return Beside(std::move(tried).error(), {removed});
    return removed;
  }

 private:
  Status Start(gate::GateHost& gate, CheckedProgram& program) {
    const cell::Job job = VersionJob(program.path);
    FirstWords words;
    Evidence evidence;
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(kVersionTimeoutMs);
    TRY(RelayJob({gate, nullptr, job, words, 0, deadline, surroundings_.cancel_fd}, evidence));
    if (evidence.cancelled) return Stopped();
    Judge(evidence, words, program);
    return Ok();
  }

  const Home& home_;
  const Terms& terms_;
  probe::CellEngine& engine_;
  Surroundings& surroundings_;
};

// The families that agents whose sandbox is on use.
std::set<std::string, std::less<>> NeededFamilies(const Home& home) {
  std::set<std::string, std::less<>> needed;
  Result<std::vector<ListedAgent>> agents = ListAgents(home);
  if (!agents.ok()) return needed;
  for (const ListedAgent& agent : agents.value()) {
    if (!agent.config.ok() || !agent.config->sandbox_enabled) continue;
    Result<Runtime> runtime = ParseRuntime(agent.config->provider);
    if (runtime.ok()) needed.emplace(FamilyName(runtime.value()));
  }
  return needed;
}

Status LookAtImage(probe::CellEngine& engine, const std::string& image, ImageCheck& check) {
  Result<probe::ImageFacts> facts = engine.CheckImage(image);
  if (!facts.ok()) {
    Error error = std::move(facts).error();
    if (error.code == "image_missing")
      error.text += Text("; `taskcell image pull ", ShellWord(image),
                         "` brings it into exactly this engine's store");
    return error;
  }
  check.image = image;
  check.id = facts->id;
  check.digests = facts->digests;
  check.architecture = facts->architecture;
  return Ok();
}

}  // namespace

std::string_view StateName(CheckedProgram::State state) {
  switch (state) {
    case CheckedProgram::State::kRuns:
      return "runs";
    case CheckedProgram::State::kMissing:
      return "missing";
    case CheckedProgram::State::kFails:
      return "fails";
    case CheckedProgram::State::kUnused:
      break;
  }
  return "unused";
}

bool ImageCheck::IsUsable() const {
  auto stands_in_the_way = [](const CheckedProgram& program) {
    return program.needed && (program.state == CheckedProgram::State::kMissing ||
                              program.state == CheckedProgram::State::kFails);
  };
  return IsRightArchitecture() && std::none_of(programs.begin(), programs.end(), stands_in_the_way);
}

std::string ArchitectureName(std::string_view machine) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"x86_64", "amd64"}, {"aarch64", "arm64"}, {"armv7l", "arm"}, {"armv6l", "arm"},
      {"i686", "386"},     {"i586", "386"},      {"i386", "386"},   {"loongarch64", "loong64"}};
  for (const auto& [name, engines] : kNames)
    if (name == machine) return std::string(engines);
  return std::string(machine);  // riscv64, ppc64le, s390x
}

Result<std::string> HostArchitecture() { return ArchitectureName(TRY(sys::MachineName())); }

Result<ImageCheck> CheckImage(const Home& home, const std::string& image,
                              Surroundings& surroundings) {
  Terms terms = TRY(ReadTerms(home));
  if (!image.empty()) terms.settings.image = image;
  const bool is_native = terms.own.engine == EngineChoice::kNative;
  if (is_native && !image.empty())
    return Error(Kind::kUsage,
                 "engine \"native\" has no images: leave IMAGE out to look at the root of its "
                 "cells, or set [taskcell] engine to docker or podman");
  TRY(CheckPlatform());
  std::unique_ptr<probe::CellEngine> engine = TRY(surroundings.make_engine(terms.own));
  TRY(engine->CheckReachable());
  TRY(engine->CheckShared({home.path, surroundings.programs.init}));
  ImageCheck check;
  check.engine = engine->Name();
  check.host_architecture = TRY(HostArchitecture());
  if (!is_native) TRY(LookAtImage(*engine, terms.settings.image, check));
  cell::CellPlan shown;
  PlanRoot(engine->kind(), terms.settings.image, terms.root, shown);
  check.root = RootText(shown.root, shown.root_source);
  const std::set<std::string, std::less<>> needed = NeededFamilies(home);
  Check one(home, terms, *engine, surroundings);
  for (const auto& [family, path] : terms.settings.executables) {
    CheckedProgram program{family, path, CheckedProgram::State::kUnused, "",
                           needed.contains(family)};
    if (family == kLoopFamily) {
      program.text = "taskcell brings its own program";
    } else {
      TRY(one.Try(program));
    }
    check.programs.push_back(std::move(program));
  }
  return check;
}

}  // namespace taskcell::gateway

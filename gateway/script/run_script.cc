// The life of a script, top to bottom: the sandbox, else the hatch, else nothing.
#include <fcntl.h>

#include <chrono>
#include <optional>
#include <utility>

#include "gateway/config/agent_config.h"
#include "gateway/ledger/audit.h"
#include "gateway/script/output.h"
#include "gateway/script/plan_script.h"
#include "gateway/script/refusal.h"
#include "gateway/script/script.h"
#include "gateway/script/settings.h"
#include "gateway/task/admission.h"
#include "gateway/task/cancel.h"
#include "gateway/task/cell_entry.h"
#include "gateway/task/host_job.h"
#include "gateway/task/relay.h"
#include "gateway/task/stream_sink.h"
#include "gateway/task/task_record.h"
#include "gateway/task/verdict.h"
#include "gateway/task/verify_cell.h"
#include "gateway/task/weaker_mode.h"
#include "launcher/base/text.h"
#include "launcher/cgroup/events.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

using Clock = std::chrono::steady_clock;
using Details = std::map<std::string, std::variant<std::string, uint64_t>, std::less<>>;

constexpr std::string_view kContainerTimedOut = "PTC container execution timed out";
constexpr std::string_view kHostTimedOut = "Script execution timed out";

Status CheckRequest(const ScriptRequest& request) {
  auto refuse = [](std::string text) {
    return Error(Kind::kUsage, std::move(text)).Coded("invalid_script");
  };
  if (request.code.size() > kMaxScriptBytes)
    return refuse(Text("the script has ", request.code.size(), " bytes; at most ", kMaxScriptBytes,
                       " are taken"));
  if (request.input.size() > kMaxScriptInputBytes)
    return refuse(Text("its standard input has ", request.input.size(), " bytes; at most ",
                       kMaxScriptInputBytes, " are taken"));
  constexpr uint64_t kMillis = 1000;
  if (request.timeout_ms == 0 || request.timeout_ms > kMaxScriptSeconds * kMillis)
    return refuse(Text("the time limit must be 1 to ", kMaxScriptSeconds, " s"));
  if (!IsAgentName(request.agent))
    return refuse(
        Text("an agent's name has 1 to ", kMaxAgentNameBytes, " letters, digits, '_' and '-'"));
  return Ok();
}

ScriptAnswer Failed(const Error& error) {
  ScriptAnswer answer;
  answer.code = error.code.empty() ? "internal_error" : std::string(error.code);
  answer.message = OneLine(error.text, kMaxMessageBytes);
  return answer;
}

// A job that never started.
Error NotStarted(const cell::Refusal& refusal, std::string_view interpreter,
                 const std::string& place) {
  const std::string why = Text(refusal.text);
  if (!IsForWantOfProgram(refusal))
    return Error(Kind::kSystem,
                 Text("its first process refused the set-up (", refusal.stage, "): ", why))
        .Coded("start_failed");
  return Error(Kind::kConfig, Text("`", interpreter, "` cannot be started in the ", place, " (",
                                   why, "); install it there"))
      .Coded("start_failed");
}

// Fills in what a job that ran came to.
void JudgeRun(const Evidence& evidence, const ScriptOutput& output, ScriptAnswer& answer) {
  answer.out = KeptText(output.out(), kMaxKeptOutput, answer.truncated);
  answer.err = KeptText(output.err(), kMaxKeptOutput, answer.truncated);
  const gate::JobEnd& end = evidence.end;
  const bool exited = end.outcome == gate::JobOutcome::kExited;
  const bool was_late =
      end.deadline_passed || (exited && end.exit.reason == cell::ExitReason::kDeadline);
  auto fail = [&answer](std::string_view code, std::string_view message) {
    answer.code = code;
    answer.message = message;
  };
  answer.exit_code = CliExit(end);
  if (!evidence.transport_error.empty()) {
    fail("transport_failed", Text("the script's run broke off: ", evidence.transport_error));
  } else if (output.overflowed()) {
    fail("output_overflow",
         Text("the script wrote more than ", kMaxScriptOutput, " bytes and was ended"));
  } else if (evidence.cancelled) {
    fail("stopped", "the script was stopped");
  } else if (was_late) {
    answer.timed_out = true;
    answer.exit_code = kTimedOutExit;
    answer.err = evidence.on_host ? kHostTimedOut : kContainerTimedOut;
  } else if (!exited) {
    fail("result_incomplete", "the script's run ended before its result was complete");
  }
  if (!evidence.events.has_value()) return;
  if (evidence.events->oom_kills > 0)
    answer.warnings.push_back(Text("the memory limit (", kScriptMemoryBytes,
                                   " bytes) was reached: processes of the script were killed"));
  if (evidence.events->pids_refusals > 0)
    answer.warnings.push_back(Text("the process limit (", kScriptPids, ") was reached"));
}

void CountTime(Clock::time_point begun, ScriptAnswer& answer) {
  answer.execution_ms = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun).count());
}

// One script and its home.
class ScriptRun {
 public:
  ScriptRun(const Home& home, const ScriptRequest& request, Surroundings& surroundings)
      : home_(home), request_(request), surroundings_(surroundings) {}

  // With its events, and the hatch.
  ScriptAnswer Run() {
    InCell();
    if (!refusal_.has_value()) return std::move(answer_);
    return Refused();
  }

  ScriptAnswer RunInCellOnly() {
    InCell();
    if (refusal_.has_value()) TellRefusal();
    return std::move(answer_);
  }

 private:
  // Fills in `answer_`, or `refusal_` where the sandbox cannot run the script.
  void InCell() {
    Result<ConfigValue> config = ReadConfig(home_);
    if (config.ok()) hatch_is_open_ = ReadEscapeHatches(config.value()).script;
    Result<ScriptSettings> settings =
        config.ok() ? ReadScriptSettings(config.value()) : std::move(config).error();
    if (!settings.ok()) {
      refusal_ = InvalidScriptConfig(settings.error());
      return;
    }
    ScriptEngine found = FindScriptEngine(home_, settings.value(), surroundings_);
    if (found.stopped.has_value()) {
      answer_ = Failed(*found.stopped);
    } else if (found.refusal.has_value()) {
      refusal_ = std::move(found.refusal);
    } else {
      Status ran = OnEngine(settings.value(), *found.engine);
      if (!ran.ok()) Fault(ran.error(), settings.value(), *found.engine);
    }
  }

  // What went wrong with an engine that was there.
  void Fault(const Error& error, const ScriptSettings& settings, const probe::CellEngine& engine) {
    const bool is_own = error.code == "workspace_failed" || error.code == "transport_failed";
    if (is_own || error.code == "stopped" || IsCancelled(surroundings_)) {
      std::vector<std::string> warnings = std::move(answer_.warnings);
      answer_ = Failed(IsCancelled(surroundings_) ? Stopped() : error);
      answer_.warnings = std::move(warnings);
      return;
    }
    const EngineStep step = stood_at_gate_ ? EngineStep::kRun : EngineStep::kMake;
    refusal_ = EngineRefusal(step, error, engine.kind(), settings.sandbox.image);
    if (error.code == "cell_mismatch") stood_at_gate_ = true;
  }

  Status OnEngine(const ScriptSettings& settings, probe::CellEngine& engine) {
    const std::string run_id = TRY(MakeRunId());
    const probe::CellIds ids = TRY(engine.ChooseIds(run_id));
    StoredScript script = TRY(StoreScript(home_, run_id, request_));
    cell::CellPlan plan =
        TRY(PlanScriptCell(home_, run_id, request_, settings, engine.kind(), ids, script));
    CellEntry entry = TRY(CellEntry::Make(home_, engine, plan));
    Receipt receipt;
    receipt.run_id = run_id;
    receipt.agent = request_.agent;
    receipt.uid_separation = ids.separate ? ids.how : "none";
    Status ran = InOwnCell(engine, std::move(plan), script, receipt, entry);
    if (stood_at_gate_) answer_.engine = engine.Name();
    answer_.verified = receipt.verified;
    answer_.uid_separation = receipt.attested ? receipt.uid_separation : "";
    Note(NoteMissingCpu(home_, "script_sandbox_weakened", {"language", Language()}, receipt));
    answer_.warnings.insert(answer_.warnings.end(), receipt.warnings.begin(),
                            receipt.warnings.end());
    Clean(script.run, receipt);
    return ran;
  }

  // The cell is killed and removed on every way out.
  Status InOwnCell(probe::CellEngine& engine, cell::CellPlan plan, const StoredScript& script,
                   Receipt& receipt, CellEntry& entry) {
    probe::CellPlaces places;
    places.run_directory = script.run.path();
    places.init_program = surroundings_.programs.init;
    places.launch_program = surroundings_.programs.launch;
    const std::string place = RootText(plan.root, plan.root_source);
    if (IsCancelled(surroundings_)) {
      Note(entry.Forget());
      return Stopped();
    }
    Result<std::unique_ptr<probe::RunningCell>> made = engine.Make(std::move(plan), places);
    if (!made.ok()) {
      Note(entry.ForgetRefused(made.error()));
      return std::move(made).error();
    }
    const std::unique_ptr<probe::RunningCell> cell = std::move(made).value();
    stood_at_gate_ = true;
    for (const std::string& warning : cell->warnings())
      receipt.warnings.push_back(Text("the engine warned: ", Printable(warning)));
    Status ran = Execute(engine.kind(), *cell, place, receipt);
    Status removed = cell->Remove();
    if (removed.ok()) {
      Note(entry.Forget());
    } else {
      CleanupFailed("container_remove_failed", removed.error());
    }
    return ran;
  }

  // Verified, then run: the one way for a job into a cell.
  Status Execute(cell::Engine engine, probe::RunningCell& cell, const std::string& place,
                 Receipt& receipt) {
    gate::GateHost gate = TRY(gate::GateHost::Open(cell.TakeGate(), surroundings_.cancel_fd));
    TRY(VerifyCell(gate, cell, engine, receipt));
    if (IsCancelled(surroundings_)) return Stopped();
    const Clock::time_point begun = Clock::now();
    const cell::Job job = PlanScriptJob(request_);
    ScriptOutput output;
    Evidence evidence;
    TRY(RelayJob({gate, nullptr, job, output, 0, Deadline(begun), surroundings_.cancel_fd},
                 evidence));
    CountTime(begun, answer_);
    if (evidence.transport_error.empty() && evidence.end.outcome == gate::JobOutcome::kRefused)
      return NotStarted(evidence.end.refusal, Interpreter(request_.language), place);
    Result<cgroup::Events> events = cell.ReadEvents();
    if (events.ok()) evidence.events = std::move(events).value();
    (void)gate.Done();  // ignoring: Remove kills what is left anyway
    JudgeRun(evidence, output, answer_);
    return Ok();
  }

  Clock::time_point Deadline(Clock::time_point begun) const {
    return begun + std::chrono::milliseconds(request_.timeout_ms);
  }

  void Clean(RunDirectory& run, const Receipt& receipt) {
    Status removed = run.Remove();
    if (!removed.ok()) CleanupFailed("directory_remove_failed", removed.error());
    if (!receipt.attested) run.RemoveEmptyParents();
  }

  void CleanupFailed(std::string_view reason, const Error& error) {
    answer_.warnings.push_back(Text(reason, ": ", error.text));
    Note(
        Audit("task_sandbox_cleanup_failed",
              {{"reason", std::string(reason)}, {"count", uint64_t{1}}, {"language", Language()}}));
  }

  void TellRefusal() {
    answer_.code = refusal_->code;
    answer_.why = refusal_->why;
    answer_.remedy = refusal_->remedy;
    answer_.message = RefusalMessage(*refusal_);
    if (refusal_->note.empty()) return;
    answer_.remedy += Text(" ", refusal_->note);
    answer_.warnings.push_back(refusal_->note);
  }

  // The sandbox cannot run the script.
  ScriptAnswer Refused() {
    TellRefusal();
    Status told = Audit(
        "script_sandbox_unavailable",
        {{"reason", std::string(refusal_->code)},
         {"language", Language()},
         {"script_when_unavailable", std::string(hatch_is_open_ ? "run_unsandboxed" : "fail")}});
    Note(told);
    if (!hatch_is_open_) return std::move(answer_);
    auto stay = [&](std::string_view why) {
      answer_.warnings.push_back(
          Text("script_when_unavailable = \"run_unsandboxed\" does not apply: ", why));
      return std::move(answer_);
    };
    if (stood_at_gate_) return stay("a cell of its own was made");
    if (surroundings_.effective_uid == 0) return stay("nothing is run on the host as root");
    if (!told.ok()) return stay("the audit log cannot be written");
    Status bypassed = Audit("script_sandbox_bypassed",
                            {{"reason", std::string(refusal_->code)}, {"language", Language()}});
    Note(bypassed);
    if (!bypassed.ok()) return stay("the audit log cannot be written");
    return OnHost();
  }

  ScriptAnswer OnHost() {
    ScriptAnswer answer;
    answer.warnings = std::move(answer_.warnings);
    answer.warnings.push_back(
        Text("the script ran on the host, without isolation, by script_when_unavailable = "
             "\"run_unsandboxed\": ",
             refusal_->why));
    answer_ = std::move(answer);
    Status ran = OnHostItself();
    if (!ran.ok()) {
      ScriptAnswer failed = Failed(ran.error());
      failed.warnings = std::move(answer_.warnings);
      failed.ran_on_host = answer_.ran_on_host;
      return failed;
    }
    return std::move(answer_);
  }

  Status OnHostItself() {
    const std::string run_id = TRY(MakeRunId());
    StoredScript script = TRY(StoreScript(home_, run_id, request_));
    UniqueFd here = TRY(sys::Open(".", O_RDONLY | O_DIRECTORY));
    const Clock::time_point begun = Clock::now();
    ScriptOutput output;
    Evidence evidence;
    TRY(RelayOnHost(
        {surroundings_.programs.host, here.get(), output, 0, Deadline(begun),
         surroundings_.cancel_fd},
        PlanHostScriptJob(request_, Text(script.path, "/", ScriptFile(request_.language)),
                          surroundings_.environment),
        evidence));
    CountTime(begun, answer_);
    if (evidence.transport_error.empty() && evidence.end.outcome == gate::JobOutcome::kRefused)
      return NotStarted(evidence.end.refusal, Interpreter(request_.language), "host");
    answer_.ran_on_host = true;
    JudgeRun(evidence, output, answer_);
    Note(script.run.Remove());
    script.run.RemoveEmptyParents();
    return Ok();
  }

  Status Audit(std::string_view event, Details details) const {
    return AppendAudit(home_.fd.get(), {event, request_.agent, "warning", std::move(details)});
  }

  void Note(const Status& status) {
    if (!status.ok()) answer_.warnings.push_back(status.error().text);
  }

  std::string Language() const { return std::string(LanguageName(request_.language)); }

  const Home& home_;
  const ScriptRequest& request_;
  Surroundings& surroundings_;
  bool hatch_is_open_ = false;
  bool stood_at_gate_ = false;  // its own cell, or one that claimed to be
  std::optional<ScriptRefusal> refusal_;
  ScriptAnswer answer_;
};

template <typename Body>
ScriptAnswer WithHome(const ScriptRequest& request, const Surroundings& surroundings, Body body) {
  Status sound = CheckRequest(request);
  if (!sound.ok()) return Failed(sound.error());
  Result<Home> home = OpenHome(request.home, surroundings.files);
  if (!home.ok()) return Failed(std::move(home).error().Coded("workspace_failed"));
  return body(home.value());
}

}  // namespace

ScriptAnswer RunScript(const ScriptRequest& request, Surroundings& surroundings) {
  return WithHome(request, surroundings,
                  [&](const Home& home) { return ScriptRun(home, request, surroundings).Run(); });
}

ScriptAnswer RunScriptInCell(const ScriptRequest& request, Surroundings& surroundings) {
  return WithHome(request, surroundings, [&](const Home& home) {
    return ScriptRun(home, request, surroundings).RunInCellOnly();
  });
}

}  // namespace taskcell::gateway

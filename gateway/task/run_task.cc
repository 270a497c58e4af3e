// The life of a task in a cell, top to bottom: one function a step.
#include <algorithm>
#include <chrono>
#include <utility>

#include "gateway/config/agent_config.h"
#include "gateway/config/secret.h"
#include "gateway/egress/record.h"
#include "gateway/ledger/audit.h"
#include "gateway/ledger/receipt.h"
#include "gateway/ledger/receipt_chain.h"
#include "gateway/runtimes/plan_job.h"
#include "gateway/task/account_choice.h"
#include "gateway/task/admission.h"
#include "gateway/task/budget.h"
#include "gateway/task/cancel.h"
#include "gateway/task/cell_task.h"
#include "gateway/task/engine_fault.h"
#include "gateway/task/evidence_differences.h"
#include "gateway/task/evidence_text.h"
#include "gateway/task/left_out.h"
#include "gateway/task/plan_task.h"
#include "gateway/task/renew_payer.h"
#include "gateway/task/run_job.h"
#include "gateway/task/stream_sink.h"
#include "gateway/task/task.h"
#include "gateway/task/task_record.h"
#include "gateway/task/verdict.h"
#include "gateway/task/verify_cell.h"
#include "gateway/task/weaker_mode.h"
#include "launcher/base/text.h"
#include "launcher/gate/gate_host.h"

namespace taskcell::gateway {
namespace {

using Clock = std::chrono::steady_clock;

// Who the task is about: for the audit log.
struct Subject {
  const Home& home;
  std::string agent;
};

void Progress(const Surroundings& surroundings, std::string_view line) {
  if (surroundings.report_progress) surroundings.report_progress(line);
}

void Audit(const Subject& subject, std::string_view event, TaskAnswer& answer,
           std::map<std::string, std::variant<std::string, uint64_t>, std::less<>> details) {
  Status written =
      AppendAudit(subject.home.fd.get(), {event, subject.agent, "warning", std::move(details)});
  if (!written.ok()) answer.warnings.push_back(written.error().text);
}

// What is known before the cell exists.
Receipt BeginReceipt(const Home& home, const Agent& agent, const Admission& admission,
                     const Payer& payer, const PlannedTask& task, const std::string& task_id) {
  Receipt receipt;
  receipt.run_id = task.plan.run_id;
  receipt.task_id = task_id;
  receipt.agent = agent.config.name;
  receipt.home = home.path;
  receipt.runtime = RuntimeId(admission.runtime);
  receipt.model = admission.model;
  receipt.provider = admission.provider;
  receipt.account = payer.account;
  receipt.engine = admission.engine->Name();
  receipt.uid_separation = task.ids.separate ? task.ids.how : "none";  // until it is measured
  receipt.started = Rfc3339(WallClock::now());
  receipt.plan = task.plan;
  receipt.snapshot = task.snapshot.content();
  receipt.credential_inside = admission.credential_inside;
  if (!admission.credential_inside) receipt.upstream = payer.route.upstream.Url();
  receipt.upstream_overridden = payer.route.overridden;
  for (const AllowedHost& host : admission.tunnel_hosts)
    receipt.tunnel_hosts.push_back(host.Spelling());
  receipt.warnings = task.Warnings();
  if (admission.credential_inside)
    receipt.warnings.push_back(
        Text("the credential of account `", Printable(payer.account),
             "` is inside the cell: ", FamilyName(admission.runtime),
             " takes no address of a broker, so it signs in at its provider by itself"));
  if (!SecretText::AllAreLocked())
    receipt.warnings.emplace_back(
        "not all credentials could be locked in memory, so they may be swapped out: raise "
        "RLIMIT_MEMLOCK (ulimit -l, LimitMEMLOCK= of a unit)");
  if (!task.ids.separate)
    receipt.warnings.push_back(
        Text("the cell's kernel uid is not separate from the gateway's: ", task.ids.how));
  return receipt;
}

// A task that was cancelled or ran out of time before its job exists ends here: the job never does.
Status CheckGoOn(const Surroundings& surroundings, uint64_t timeout_ms,
                 Clock::time_point deadline) {
  if (IsCancelled(surroundings)) return Stopped();
  if (Clock::now() < deadline) return Ok();
  return Error(Kind::kSystem, TimedOutMessage(timeout_ms)).Coded("timeout");
}

JobRequest MakeJobRequest(const Agent& agent, const Admission& admission, const Payer& payer,
                          const PlannedTask& task, const Receipt& receipt,
                          Clock::time_point deadline) {
  JobRequest request;
  request.runtime = admission.runtime;
  request.executable = admission.executable;
  request.model = admission.model;
  request.max_turns = admission.settings.max_turns;
  request.denied_tools = agent.config.denied_tools;
  request.prompt = task.prompt;
  request.broker_port = receipt.seen.inside.listener_port;
  request.tunnel_port = receipt.seen.inside.tunnel_port;
  request.open_network = task.plan.network == cell::NetworkMode::kOpen;
  if (admission.credential_inside) request.secret = payer.route.credential.secret;
  request.shape = payer.oauth ? CredentialShape::kOauthToken : CredentialShape::kApiKey;
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  request.timeout_ms = static_cast<uint64_t>(std::max<int64_t>(left.count(), 1));
  return request;
}

void RecordEvidence(const Evidence& evidence, Receipt& receipt) {
  receipt.egress_json = RecordJson(evidence.egress);
  receipt.differences = FindDifferences(evidence);
  if (evidence.events.has_value()) receipt.events_json = EventsJson(*evidence.events);
  receipt.job_end = evidence.transport_error.empty() ? EndText(evidence.end) : "the gate broke off";
}

// Of a task, an engine that did not start the container is told like one that did not create it.
Result<std::unique_ptr<probe::RunningCell>> MakeCell(const Admission& admission,
                                                     const cell::CellPlan& plan,
                                                     const probe::CellPlaces& places) {
  Result<std::unique_ptr<probe::RunningCell>> cell = admission.engine->Make(plan, places);
  if (cell.ok()) return cell;
  Error error =
      NameEngineFault(std::move(cell).error(), *admission.engine, plan.limits, plan.root_source);
  return error.code == "container_start_failed" ? std::move(error).Coded("container_create_failed")
                                                : std::move(error);
}

// What a cell that was made came to.
struct CellOutcome {
  Verdict verdict;
  TaskUsage usage;
  std::optional<ExportSummary> exported;
  AccountLesson lesson;
};

// Steps 4 to 8 with a cell that is killed and removed on every way out; what could not be removed
// is told in `removed`.
Result<CellOutcome> RunInCell(const Home& home, const Agent& agent, const Admission& admission,
                              Payer& payer, PlannedTask& task, Surroundings& surroundings,
                              Clock::time_point begun, Receipt& receipt, Status& removed,
                              bool& cell_made) {
  const Clock::time_point deadline = begun + std::chrono::milliseconds(agent.config.timeout_ms);
  const SecretText secret = payer.route.credential.secret;
  TRY(CheckGoOn(surroundings, agent.config.timeout_ms, deadline));
  Progress(surroundings, Text("making a cell (", admission.engine->Name(), ")"));
  const probe::CellPlaces places{task.directory.path(), surroundings.programs.init,
                                 surroundings.programs.launch};
  Result<std::unique_ptr<probe::RunningCell>> made = MakeCell(admission, task.plan, places);
  cell_made = cell_made || made.ok() || admission.engine->MayHaveMade();
  std::unique_ptr<probe::RunningCell> cell = TRY(std::move(made));
  auto run = [&]() -> Result<Evidence> {
    for (const std::string& warning : cell->warnings())
      receipt.warnings.push_back(Text("the engine warned: ", Printable(warning)));
    gate::GateHost gate = TRY(gate::GateHost::Open(cell->TakeGate(), surroundings.cancel_fd));
    CellWays ways = TRY(VerifyCell(gate, *cell, admission.engine->kind(), receipt));
    receipt.setup_ms = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun).count());
    TRY(CheckGoOn(surroundings, agent.config.timeout_ms, deadline));
    Progress(surroundings, "the cell is verified; the AI starts");
    const cell::Job job =
        TRY(PlanJob(MakeJobRequest(agent, admission, payer, task, receipt, deadline)));
    RunTerms terms;
    terms.runtime = admission.runtime;
    terms.account = payer.account;
    terms.budget_cents = payer.budget_cents.value_or(0);
    terms.executable = job.argv.empty() ? "" : job.argv.front();
    terms.root = RootText(task.plan.root, task.plan.root_source);
    terms.credential_inside = admission.credential_inside;
    terms.memory_bytes = task.plan.limits.memory_bytes;
    terms.pids = task.plan.limits.pids;
    terms.max_turns = admission.settings.max_turns;
    terms.timeout_ms = agent.config.timeout_ms;
    terms.deadline = deadline;
    terms.cancel_fd = surroundings.cancel_fd;
    if (agent.config.exports) terms.export_to = &home;
    terms.run_id = task.plan.run_id;
    Broker* broker = TRY(surroundings.broker());
    ways.allowed = admission.tunnel_hosts;
    ways.route = std::move(payer.route);
    // Without a route nobody serves its listener: a connection to it is refused.
    if (admission.credential_inside) ways.listener.Reset();
    std::unique_ptr<BrokerCell> way = TRY(broker->Attach(std::move(ways)));
    return RunJob(gate, *cell, *way, job, terms);
  };
  Result<Evidence> evidence = run();
  removed = cell->Remove();
  if (!evidence.ok()) return std::move(evidence).error();
  RedactRun(evidence->run, secret);
  RecordEvidence(evidence.value(), receipt);
  CellOutcome outcome;
  outcome.usage = UsageOf(evidence->egress, admission.own_settings.prices, admission.provider);
  outcome.usage.is_known = !admission.credential_inside;
  receipt.usage_json = UsageJson(outcome.usage);
  outcome.exported = evidence->exported;
  if (outcome.exported.has_value()) receipt.export_json = ExportJson(*outcome.exported);
  outcome.verdict = Classify(evidence.value());
  outcome.lesson = LearnAboutAccount(evidence.value(), outcome.verdict.code);
  return outcome;
}

// Step 9, the record: receipt in the answer always, on disk once a cell was measured.
void Record(Receipt& receipt, const Home& home, const RunDirectory& directory,
            Clock::time_point begun, TaskRecord& record, TaskAnswer& answer) {
  receipt.ended = Rfc3339(WallClock::now());
  receipt.wall_ms = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun).count());
  receipt.outcome = OutcomeWord(answer.code);
  receipt.code = answer.code;
  receipt.message = answer.message;
  receipt.step_limit = answer.step_limit;
  answer.warnings.insert(answer.warnings.end(), receipt.warnings.begin(), receipt.warnings.end());
  answer.receipt_json = ReceiptJson(receipt);
  if (!receipt.attested) return;
  Status written = WriteReceipt(directory.sandbox_fd(), receipt.run_id, answer.receipt_json);
  if (written.ok()) {
    answer.receipt_path = Text(receipt.home, "/sandbox/receipts/", receipt.run_id, ".json");
  } else {
    answer.warnings.push_back(Text("the receipt was not written: ", written.error().text));
  }
  Status chained = record.AddReceipt(home, answer.receipt_json);
  if (!chained.ok())
    answer.warnings.push_back(
        Text("the receipt is not in ", kReceiptsFile, ": ", chained.error().text));
}

// Step 9, the cleaning. What stays behind is audited; a reply that is there is delivered all the
// same.
void Clean(const Subject& subject, std::string_view family, const Status& cell_removed,
           PlannedTask& task, bool attested, TaskAnswer& answer) {
  auto failed = [&](std::string_view reason, const Error& error) {
    answer.warnings.push_back(Text(reason, ": ", error.text));
    Audit(subject, "task_sandbox_cleanup_failed", answer,
          {{"reason", std::string(reason)},
           {"count", uint64_t{1}},
           {"runtime", std::string(family)}});
  };
  if (!cell_removed.ok()) failed("container_remove_failed", cell_removed.error());
  // A refusal leaves no copy that was not there before.
  Status released = task.snapshot.Release(attested);
  if (!released.ok()) failed("directory_remove_failed", released.error());
  Status removed = task.directory.Remove();
  if (!removed.ok()) failed("directory_remove_failed", removed.error());
  if (!attested) task.directory.RemoveEmptyParents();
}

// What became of the files, for the audit log and for whoever gets the answer: a reply is delivered
// whatever it is.
void TellExport(const Subject& subject, const std::string& run_id, const ExportSummary& exported,
                TaskAnswer& answer) {
  answer.export_path = exported.path;
  if (!exported.why.empty()) {
    answer.warnings.push_back(Text("nothing was exported: ", exported.why));
    return Audit(subject, "task_sandbox_export_failed", answer, {{"run_id", run_id}});
  }
  if (exported.left_out > 0)
    answer.warnings.push_back(Text("the export left out ", exported.left_out,
                                   exported.left_out == 1 ? " entry that is" : " entries that are",
                                   " no regular file of one name"));
  if (exported.files == 0) return;
  Audit(subject, "task_sandbox_exported", answer,
        {{"run_id", run_id}, {"files", exported.files}, {"bytes", exported.bytes}});
}

// Steps 2 to 9 with one account; another one may be tried after it where `try_another` is set.
// `told_before` is what the task was warned of with those before it.
TaskAnswer RunWith(Payer& payer, const Subject& subject, const Agent& agent,
                   const Admission& admission, const TaskRequest& request,
                   Surroundings& surroundings, Clock::time_point begun,
                   const std::vector<std::string>& told_before, CellTask& course,
                   bool& try_another) {
  TaskRecord& record = *course.record;
  Result<PlannedTask> task = PlanTask(subject.home, agent, admission, surroundings, request);
  if (!task.ok()) return AnswerForFault(task.error(), surroundings);
  const std::string_view family = FamilyName(admission.runtime);
  Receipt receipt =
      BeginReceipt(subject.home, agent, admission, payer, task.value(), record.task_id());
  LogLeftOut(subject.home, told_before, receipt);
  Status noted = NoteOpenEgress(subject.home, family, receipt);
  if (!noted.ok()) return AnswerFor(noted.error());
  RunRow run{task->plan.run_id,
             record.task_id(),
             admission.engine->Name(),
             payer.account,
             UnixMilliseconds(),
             task->plan.deadline_unix_ms,
             0};
  noted = record.BeginCell(run);
  if (!noted.ok()) return AnswerFor(noted.error());
  Status cell_removed = Ok();
  const SecretText token = payer.login.has_value() ? payer.route.credential.secret : SecretText();
  Result<CellOutcome> outcome =
      RunInCell(subject.home, agent, admission, payer, task.value(), surroundings, begun, receipt,
                cell_removed, course.cell_made);
  std::string forbidden_tool = outcome.ok() ? outcome->verdict.forbidden_tool : "";
  const AccountLesson lesson = outcome.ok() ? outcome->lesson : AccountLesson();
  const TaskUsage usage = outcome.ok() ? outcome->usage : TaskUsage();
  ProvePayer(payer, admission, lesson, token);
  try_another = lesson.may_try_another;
  TaskAnswer answer = outcome.ok() ? AnswerOf(std::move(outcome->verdict))
                                   : AnswerForFault(outcome.error(), surroundings);
  if (answer.code == "tool_violation")
    Audit(subject, "task_sandbox_tool_violation", answer,
          {{"runtime", std::string(family)}, {"tool", forbidden_tool}});
  for (const Status& audited : {NoteDifferences(subject.home, family, receipt),
                                NoteMissingCpu(subject.home, "task_sandbox_weakened",
                                               {"runtime", std::string(family)}, receipt)})
    if (!audited.ok()) answer.warnings.push_back(audited.error().text);
  if (outcome.ok() && outcome->exported.has_value())
    TellExport(subject, task->plan.run_id, *outcome->exported, answer);
  answer.usage = usage;
  record.Pay(payer.account, usage, answer.warnings);
  Record(receipt, subject.home, task->directory, begun, record, answer);
  Clean(subject, family, cell_removed, task.value(), receipt.attested, answer);
  record.EndCell(run, payer.fingerprint, lesson, admission.rate_limit_cooldown_s, answer.warnings);
  return answer;
}

// An admitted task: with the first account, and while the provider refuses accounts before any tool
// ran, with the next.
TaskAnswer RunAdmitted(const Subject& subject, const Agent& agent, Admission& admission,
                       const TaskRequest& request, Surroundings& surroundings,
                       Clock::time_point begun, CellTask& course) {
  Result<TaskRecord> record = TaskRecord::Begin(subject.home, subject.agent, request,
                                                std::exchange(admission.ledger, std::nullopt));
  if (!record.ok()) return AnswerFor(record.error());
  course.record = std::move(record).value();
  TaskAnswer answer;
  TaskUsage usage;
  std::vector<std::string> warnings;
  for (Payer& payer : admission.payers) {
    bool try_another = false;
    auto purse = HoldToBudget(subject.home, admission, surroundings, *course.record, payer);
    Status ready =
        purse.ok() ? RenewPayer(payer, admission, agent.config.timeout_ms, surroundings, warnings)
                   : Status(purse.error());
    if (ready.ok()) {
      answer = RunWith(payer, subject, agent, admission, request, surroundings, begun, warnings,
                       course, try_another);
      DropTold(warnings, answer.warnings);
      Add(answer.usage, usage);
    } else {
      answer = AnswerForFault(ready.error(), surroundings);
      const AccountLesson lesson = LessonOfRenewal(ready.error());
      course.record->Learn(payer.account, payer.fingerprint, lesson,
                           admission.rate_limit_cooldown_s, warnings);
      try_another = lesson.may_try_another;
    }
    if (!try_another || &payer == &admission.payers.back()) break;
    const std::string next = std::next(&payer)->account;
    warnings.insert(warnings.end(), answer.warnings.begin(), answer.warnings.end());
    warnings.push_back(Text("account `", payer.account, "`: ", answer.code, "; account `", next,
                            "` is tried next"));
    Progress(surroundings, warnings.back());
  }
  answer.warnings.insert(answer.warnings.begin(), warnings.begin(), warnings.end());
  answer.usage = usage;
  return answer;
}

}  // namespace

CellTask RunCellTask(const Home& home, const Agent& agent, const TaskRequest& request,
                     Surroundings& surroundings, Clock::time_point begun) {
  CellTask course;
  const Subject subject{home, agent.config.name};
  Result<Admission> admission = Admit(home, agent.config, surroundings);
  if (!admission.ok()) {
    course.answer = AnswerForFault(admission.error(), surroundings);
    return course;
  }
  course.answer =
      RunAdmitted(subject, agent, admission.value(), request, surroundings, begun, course);
  course.answer.warnings.insert(course.answer.warnings.end(), admission->warnings.begin(),
                                admission->warnings.end());
  return course;
}

}  // namespace taskcell::gateway

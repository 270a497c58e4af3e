// The life of a task that runs on the host itself, top to bottom.
#include "gateway/task/host_task.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "gateway/config/account_wish.h"
#include "gateway/config/accounts.h"
#include "gateway/config/rotation.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/egress/routes.h"
#include "gateway/ledger/audit.h"
#include "gateway/ledger/host_receipt.h"
#include "gateway/ledger/receipt_chain.h"
#include "gateway/runtimes/plan_host_job.h"
#include "gateway/task/account_choice.h"
#include "gateway/task/admission.h"
#include "gateway/task/cancel.h"
#include "gateway/task/evidence_text.h"
#include "gateway/task/host_job.h"
#include "gateway/task/prompt.h"
#include "gateway/task/run_directory.h"
#include "gateway/task/stream_sink.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

using Clock = std::chrono::steady_clock;

struct HostAdmission {
  Runtime runtime = Runtime::kClaude;
  uint64_t max_turns = 0;
  uint64_t timeout_ms = 0;
  std::string override_url;
  std::vector<Account> payers;   // in the order to be tried; empty: the program's own login
  std::optional<Ledger> ledger;  // as in Admission
  int64_t rate_limit_cooldown_s = 0;
};

Error Invalid(std::string text) {
  return Error(Kind::kConfig, std::move(text)).Coded("invalid_config");
}

// What is wrong with the section is a matter of cells: here its defaults apply.
SandboxSettings SettingsFor(const ConfigValue& config, const AgentConfig& agent) {
  Result<SandboxSettings> read = ReadSandboxSettings(config);
  SandboxSettings settings = read.ok() ? std::move(read).value() : DefaultSandboxSettings();
  SandboxSettings lowered = settings;
  return LowerLimits(agent.limits, lowered).ok() ? lowered : settings;
}

Result<HostAdmission> AdmitOnHost(const Home& home, const AgentConfig& agent,
                                  const Environment& environment, bool bypassed) {
  const ConfigValue config = TRY(ReadConfig(home));
  HostAdmission admission;
  admission.runtime = TRY(ParseHostRuntime(agent.provider));
  admission.max_turns = SettingsFor(config, agent).max_turns;
  admission.timeout_ms = agent.timeout_ms;
  if (agent.timeout_ms == 0 && bypassed) admission.timeout_ms = kDefaultTimeoutMs;
  if (admission.timeout_ms == 0)
    return Invalid("[container] timeout_ms of agent.toml must not be 0");
  if (agent.model.empty()) return Invalid("the agent has no model: set [model] preferred");
  const std::string_view provider = HostProvider(admission.runtime);
  const std::string_view variable = OverrideVariable(provider);
  if (!variable.empty()) admission.override_url = Lookup(environment, variable);
  if (!admission.override_url.empty()) TRY(ParseUpstream(admission.override_url).With(variable));
  const Rotation rotation = TRY(ReadRotation(config));
  admission.rate_limit_cooldown_s = rotation.rate_limit_cooldown_s;
  AccountWish wish;
  wish.family = FamilyName(admission.runtime);
  wish.provider = provider;
  wish.oauth_token = admission.runtime == Runtime::kClaude;
  wish.pool = agent.account_pool;
  Result<ChosenAccounts> chosen = ChooseAccounts(home, config, wish, environment, rotation);
  if (chosen.ok()) {
    admission.payers = std::move(chosen->accounts);
    admission.ledger = std::move(chosen->ledger);
  } else if (!bypassed || chosen.error().code != "no_account") {
    return std::move(chosen).error();
  }
  return admission;
}

TaskAnswer Failed(const Error& error, const Surroundings& surroundings) {
  TaskAnswer answer = AnswerForFault(error, surroundings);
  if (!IsUnavailable(answer.code)) return answer;
  answer.message = OneLine(Text("the task cannot run on the host: ", error.text), kMaxMessageBytes);
  return answer;
}

// One task on the host, with all that its runs have in common.
struct HostCourse {
  const Home& home;
  const Agent& agent;
  const TaskRequest& request;
  const HostAdmission& admission;
  std::string prompt;
  Surroundings& surroundings;
  Clock::time_point begun;
  bool bypassed = false;
  TaskRecord& record;
};

HostReceipt BeginReceipt(const HostCourse& course, const Account* payer) {
  HostReceipt receipt;
  receipt.task_id = course.record.task_id();
  receipt.agent = course.agent.config.name;
  receipt.home = course.home.path;
  receipt.runtime = RuntimeId(course.admission.runtime);
  receipt.model = course.agent.config.model;
  receipt.provider = HostProvider(course.admission.runtime);
  if (payer != nullptr) receipt.account = payer->id;
  receipt.started = Rfc3339(WallClock::now());
  receipt.kind = TaskKindName(course.request.kind);
  receipt.bypassed = course.bypassed;
  receipt.max_turns = course.admission.max_turns;
  receipt.timeout_ms = course.admission.timeout_ms;
  return receipt;
}

// What the program told, which nobody else saw.
void RecordEvidence(const Evidence& evidence, HostReceipt& receipt) {
  receipt.started_program = evidence.end.started;
  receipt.steps = evidence.run.steps;
  receipt.used_tool = evidence.run.used_tool;
  receipt.tokens_told = evidence.run.usage.seen;
  receipt.input_tokens = evidence.run.usage.input;
  receipt.cached_tokens = evidence.run.usage.cached_input;
  receipt.output_tokens = evidence.run.usage.output;
  receipt.job_end = evidence.transport_error.empty() ? EndText(evidence.end) : "the gate broke off";
}

// The receipt of a run, in the home's chain: there is no cell whose directory could hold a copy.
void Record(const HostCourse& course, HostReceipt& receipt, TaskAnswer& answer) {
  Result<std::string> run_id = MakeRunId();
  if (!run_id.ok()) return answer.warnings.push_back(run_id.error().text);
  receipt.run_id = std::move(run_id).value();
  receipt.ended = Rfc3339(WallClock::now());
  receipt.wall_ms = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - course.begun).count());
  receipt.outcome = OutcomeWord(answer.code);
  receipt.code = answer.code;
  receipt.message = answer.message;
  receipt.step_limit = answer.step_limit;
  answer.receipt_json = ReceiptJson(receipt);
  Status chained = course.record.AddReceipt(course.home, answer.receipt_json);
  if (!chained.ok())
    answer.warnings.push_back(
        Text("the receipt is not in ", kReceiptsFile, ": ", chained.error().text));
}

// With one account, or none.
TaskAnswer RunWith(const HostCourse& course, const Account* payer, AccountLesson& lesson) {
  const HostAdmission& admission = course.admission;
  HostTerms terms;
  terms.deadline = course.begun + std::chrono::milliseconds(admission.timeout_ms);
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(terms.deadline - Clock::now());
  HostJobRequest request;
  request.runtime = admission.runtime;
  request.model = course.agent.config.model;
  request.max_turns = admission.max_turns;
  request.denied_tools = course.agent.config.denied_tools;
  request.prompt = course.prompt;
  request.environment = course.surroundings.environment;
  request.override_url = admission.override_url;
  request.timeout_ms = static_cast<uint64_t>(std::max<int64_t>(left.count(), 1));
  if (payer != nullptr) {
    request.secret = payer->secret;
    request.oauth = payer->type == AccountType::kOauth;
    terms.account = payer->id;
  }
  terms.runtime = admission.runtime;
  terms.max_turns = admission.max_turns;
  terms.timeout_ms = admission.timeout_ms;
  terms.cancel_fd = course.surroundings.cancel_fd;
  Result<cell::Job> job = PlanHostJob(request);
  if (!job.ok()) return Failed(job.error(), course.surroundings);
  HostReceipt receipt = BeginReceipt(course, payer);
  Result<Evidence> evidence =
      RunHostJob(course.surroundings.programs.host, course.agent.directory.get(),
                 std::move(job).value(), terms);
  TaskAnswer answer;
  if (evidence.ok()) {
    RedactRun(evidence->run, request.secret);
    RecordEvidence(evidence.value(), receipt);
    Verdict verdict = Classify(evidence.value());
    lesson = LearnAboutAccount(evidence.value(), verdict.code);
    const std::string message = verdict.message;
    answer = AnswerOf(std::move(verdict));
    answer.message = OneLine(message, kMaxMessageBytes);  // the sandbox's frame is not for it
  } else {
    answer = Failed(evidence.error(), course.surroundings);
  }
  Record(course, receipt, answer);
  return answer;
}

TaskAnswer RunAdmitted(const HostCourse& course) {
  const std::vector<Account>& payers = course.admission.payers;
  AccountLesson lesson;
  if (payers.empty()) return RunWith(course, nullptr, lesson);
  TaskAnswer answer;
  std::vector<std::string> warnings;
  for (const Account& payer : payers) {
    lesson = AccountLesson();
    answer = RunWith(course, &payer, lesson);
    course.record.Learn(payer.id, payer.Fingerprint(), lesson,
                        course.admission.rate_limit_cooldown_s, warnings);
    if (!lesson.may_try_another || &payer == &payers.back()) break;
    warnings.push_back(Text("account `", payer.id, "`: ", answer.code, "; account `",
                            std::next(&payer)->id, "` is tried next"));
  }
  answer.warnings.insert(answer.warnings.begin(), warnings.begin(), warnings.end());
  return answer;
}

}  // namespace

TaskAnswer RunHostTask(const Home& home, const Agent& agent, const TaskRequest& request,
                       Surroundings& surroundings, Clock::time_point begun,
                       const std::function<Status()>& note_bypass,
                       std::optional<TaskRecord>& record) {
  const bool bypassed = static_cast<bool>(note_bypass);
  TaskAnswer answer;
  std::vector<std::string> warnings;
  Result<HostAdmission> admission =
      AdmitOnHost(home, agent.config, surroundings.environment, bypassed);
  Result<std::string> system = ReadSystemPrompt(*home.files, agent.directory.get(), warnings);
  if (!record.has_value() && admission.ok() && system.ok()) {
    Result<TaskRecord> begun_record = TaskRecord::Begin(
        home, agent.config.name, request, std::exchange(admission->ledger, std::nullopt));
    if (begun_record.ok()) {
      record = std::move(begun_record).value();
    } else {
      answer = Failed(begun_record.error(), surroundings);
    }
  }
  if (!admission.ok()) {
    answer = Failed(admission.error(), surroundings);
  } else if (!system.ok()) {
    answer = Failed(system.error(), surroundings);
  } else if (Status noted = bypassed && record.has_value() ? note_bypass() : Ok(); !noted.ok()) {
    answer = Failed(noted.error(), surroundings);
  } else if (record.has_value()) {
    if (surroundings.report_progress)
      surroundings.report_progress("the task runs on the host, without isolation");
    answer = RunAdmitted({home, agent, request, admission.value(),
                          WholePrompt(system.value(), request.prompt), surroundings, begun,
                          bypassed, *record});
    answer.ran_on_host = true;
  }
  answer.for_host = true;
  answer.warnings.insert(answer.warnings.end(), warnings.begin(), warnings.end());
  return answer;
}

}  // namespace taskcell::gateway

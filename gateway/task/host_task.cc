// The life of a task that runs on the host itself, top to bottom.
#include "gateway/task/host_task.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "gateway/config/accounts.h"
#include "gateway/config/rotation.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/egress/routes.h"
#include "gateway/runtimes/plan_host_job.h"
#include "gateway/task/account_choice.h"
#include "gateway/task/admission.h"
#include "gateway/task/cancel.h"
#include "gateway/task/host_job.h"
#include "gateway/task/prompt.h"
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
  std::vector<Account> payers;  // in the order to be tried; empty: the program's own login
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
  Result<std::vector<Account>> payers = ChooseAccounts(home, config, wish, environment, rotation);
  if (payers.ok()) {
    admission.payers = std::move(payers).value();
  } else if (!bypassed || payers.error().code != "no_account") {
    return std::move(payers).error();
  }
  return admission;
}

TaskAnswer Failed(const Error& error, const Surroundings& surroundings) {
  TaskAnswer answer = AnswerForFault(error, surroundings);
  if (!IsUnavailable(answer.code)) return answer;
  answer.message = OneLine(Text("the task cannot run on the host: ", error.text), kMaxMessageBytes);
  return answer;
}

// With one account, or none.
TaskAnswer RunWith(const Account* payer, const Agent& agent, const HostAdmission& admission,
                   const std::string& prompt, Surroundings& surroundings, Clock::time_point begun,
                   AccountLesson& lesson) {
  HostTerms terms;
  terms.deadline = begun + std::chrono::milliseconds(admission.timeout_ms);
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(terms.deadline - Clock::now());
  HostJobRequest request;
  request.runtime = admission.runtime;
  request.model = agent.config.model;
  request.max_turns = admission.max_turns;
  request.denied_tools = agent.config.denied_tools;
  request.prompt = prompt;
  request.environment = surroundings.environment;
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
  terms.cancel_fd = surroundings.cancel_fd;
  Result<cell::Job> job = PlanHostJob(request);
  if (!job.ok()) return Failed(job.error(), surroundings);
  Result<Evidence> evidence =
      RunHostJob(surroundings.programs.host, agent.directory.get(), std::move(job).value(), terms);
  if (!evidence.ok()) return Failed(evidence.error(), surroundings);
  RedactRun(evidence->run, request.secret);
  Verdict verdict = Classify(evidence.value());
  lesson = LearnAboutAccount(evidence.value(), verdict.code);
  const std::string message = verdict.message;
  TaskAnswer answer = AnswerOf(std::move(verdict));
  answer.message = OneLine(message, kMaxMessageBytes);  // the sandbox's frame is not for it
  return answer;
}

TaskAnswer RunAdmitted(const Agent& agent, const HostAdmission& admission,
                       const std::string& prompt, Surroundings& surroundings,
                       Clock::time_point begun, TaskRecord& record) {
  AccountLesson lesson;
  if (admission.payers.empty())
    return RunWith(nullptr, agent, admission, prompt, surroundings, begun, lesson);
  TaskAnswer answer;
  std::vector<std::string> warnings;
  for (const Account& payer : admission.payers) {
    lesson = AccountLesson();
    answer = RunWith(&payer, agent, admission, prompt, surroundings, begun, lesson);
    record.Learn(payer.id, payer.Fingerprint(), lesson, admission.rate_limit_cooldown_s, warnings);
    if (!lesson.may_try_another || &payer == &admission.payers.back()) break;
    warnings.push_back(Text("account `", payer.id, "`: ", answer.code, "; account `",
                            std::next(&payer)->id, "` is tried next"));
  }
  answer.warnings.insert(answer.warnings.begin(), warnings.begin(), warnings.end());
  return answer;
}

}  // namespace

TaskAnswer RunHostTask(const Home& home, const Agent& agent, const TaskRequest& request,
                       Surroundings& surroundings, Clock::time_point begun, bool bypassed,
                       std::optional<TaskRecord>& record) {
  TaskAnswer answer;
  std::vector<std::string> warnings;
  Result<HostAdmission> admission =
      AdmitOnHost(home, agent.config, surroundings.environment, bypassed);
  Result<std::string> system = ReadSystemPrompt(agent.directory.get(), warnings);
  if (!record.has_value() && admission.ok() && system.ok()) {
    Result<TaskRecord> begun_record = TaskRecord::Begin(home, agent.config.name, request);
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
  } else if (record.has_value()) {
    if (surroundings.report_progress)
      surroundings.report_progress("the task runs on the host, without isolation");
    answer = RunAdmitted(agent, admission.value(), WholePrompt(system.value(), request.prompt),
                         surroundings, begun, *record);
    answer.ran_on_host = true;
  }
  answer.for_host = true;
  answer.warnings.insert(answer.warnings.end(), warnings.begin(), warnings.end());
  return answer;
}

}  // namespace taskcell::gateway

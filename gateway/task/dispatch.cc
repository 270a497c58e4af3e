// Where a task runs: in a cell, on the host, or not at all; and what is told about it.
#include <chrono>
#include <utility>

#include "gateway/config/sandbox_settings.h"
#include "gateway/config/team_gate.h"
#include "gateway/ledger/audit.h"
#include "gateway/ledger/gateway_log.h"
#include "gateway/runtimes/runtime.h"
#include "gateway/task/admission.h"
#include "gateway/task/cell_task.h"
#include "gateway/task/host_task.h"
#include "gateway/task/prompt.h"
#include "gateway/task/task.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view kSkipped = "skipped";
using Details = std::map<std::string, std::variant<std::string, uint64_t>, std::less<>>;

// The id as agent.toml means it, or what can be shown of what it says.
std::string RuntimeIdAsWritten(const AgentConfig& config) {
  Result<Runtime> runtime = ParseFamily(config.provider);
  if (runtime.ok()) return std::string(RuntimeId(runtime.value()));
  return Trim(config.provider).empty() ? "claude" : AuditToolName(config.provider);
}

Status Audit(const Home& home, const std::string& agent, std::string_view event, Details details) {
  return AppendAudit(home.fd.get(), {event, agent, "warning", std::move(details)});
}

TaskAnswer NotRun(std::string_view code, std::string_view message) {
  TaskAnswer answer;
  answer.code = code;
  answer.message = OneLine(message, kMaxMessageBytes);
  return answer;
}

// One task of one agent.
class Dispatch {
 public:
  Dispatch(const Home& home, const Agent& agent, const TaskRequest& request,
           Surroundings& surroundings, Clock::time_point begun)
      : home_(home),
        agent_(agent),
        request_(request),
        surroundings_(surroundings),
        begun_(begun),
        runtime_(RuntimeIdAsWritten(agent.config)) {}

  TaskAnswer Run() {
    TaskAnswer answer = Choose();
    if (record_.has_value()) record_->End(answer);
    answer.warnings.insert(answer.warnings.end(), agent_.warnings.begin(), agent_.warnings.end());
    return answer;
  }

 private:
  TaskAnswer Choose() {
    if (!agent_.config.sandbox_enabled)
      return OnHost("its agent has [container] sandbox_enabled = false");
    if (!request_.team_role.empty()) return RefuseTeam();
    switch (CoverageOf(request_.kind)) {
      case Coverage::kSkipped:
        return Skip();
      case Coverage::kOnHost:
        return OnUncoveredPath();
      case Coverage::kInCell:
        break;
    }
    return InCell();
  }

  TaskAnswer OnHost(std::string_view why) {
    if (!request_.inputs.empty())
      return NotRun("cell_required",
                    Text("the task was not run: ", why,
                         ", so it would run on the host, where there is no /input"));
    if (request_.require_cell)
      return NotRun("cell_required",
                    Text("the task was not run: ", why,
                         ", so it would run on the host, and --require-cell was given"));
    TaskAnswer answer = RunHostTask(home_, agent_, request_, surroundings_, begun_, {}, record_);
    if (answer.ran_on_host)
      answer.warnings.push_back(Text("the task ran on the host, without isolation: ", why));
    return answer;
  }

  // The members of a team would run on the host.
  TaskAnswer RefuseTeam() const {
    return NotRun("team_round_refused",
                  Text("the round was not run: it asks for the team role `",
                       Printable(request_.team_role.substr(0, 64)),
                       "`, and an agent with [container] sandbox_enabled = true works alone; "
                       "send it as a Solo round"));
  }

  TaskAnswer Skip() {
    TaskAnswer answer = NotRun(
        kSkipped, Text("nothing was run: a task of kind ", TaskKindName(request_.kind),
                       " needs what no cell has, and this agent has [container] sandbox_enabled "
                       "= true; the message stays where it is, for a person"));
    NoteUncovered("skipped", answer);
    return answer;
  }

  TaskAnswer OnUncoveredPath() {
    const std::string why =
        Text("a task of kind ", TaskKindName(request_.kind), " is not covered by the sandbox");
    if (request_.require_cell) return OnHost(why);
    TaskAnswer noted;
    NoteUncovered("ran_on_host", noted);
    TaskAnswer answer = OnHost(why);
    answer.warnings.insert(answer.warnings.begin(), noted.warnings.begin(), noted.warnings.end());
    return answer;
  }

  // Once for each agent and path in the life of the process.
  void NoteUncovered(const std::string& action, TaskAnswer& answer) {
    if (surroundings_.is_first_uncovered &&
        !surroundings_.is_first_uncovered(agent_.config.name, request_.kind))
      return;
    const std::string path(TaskKindName(request_.kind));
    Status audited = Audit(home_, agent_.config.name, "task_sandbox_not_applied",
                           {{"path", path}, {"action", action}});
    if (!audited.ok()) answer.warnings.push_back(audited.error().text);
    Status logged = AppendLog(
        home_.fd.get(),
        {"sandbox_not_applied", agent_.config.name, {{"path", path}, {"action", action}}});
    if (!logged.ok()) answer.warnings.push_back(logged.error().text);
  }

  TaskAnswer InCell() {
    CellTask course = RunCellTask(home_, agent_, request_, surroundings_, begun_);
    record_ = std::move(course.record);
    if (!IsUnavailable(course.answer.code)) return std::move(course.answer);
    return Refused(std::move(course.answer), course.cell_made);
  }

  // The sandbox cannot run: that is audited, and with an open hatch the task runs on the host.
  TaskAnswer Refused(TaskAnswer refusal, bool cell_made) {
    const bool is_open = IsHatchOpen();
    Status told = Audit(home_, agent_.config.name, "task_sandbox_unavailable",
                        {{"reason", refusal.code},
                         {"runtime", runtime_},
                         {"when_unavailable", std::string(is_open ? "run_unsandboxed" : "fail")}});
    if (!told.ok()) refusal.warnings.push_back(told.error().text);
    if (!is_open) return refusal;
    auto stay = [&](std::string_view why) {
      refusal.warnings.push_back(Text(
          "when_unavailable = \"run_unsandboxed\" does not apply, the task was not run: ", why));
      return std::move(refusal);
    };
    if (cell_made) return stay("a cell of its own was made, or may have been");
    if (request_.require_cell) return stay("--require-cell was given");
    if (!request_.inputs.empty()) return stay("there is no /input on the host");
    if (!told.ok()) return stay("the audit log cannot be written");
    bool is_noted = true;
    auto note_bypass = [&] {
      Status noted = Audit(home_, agent_.config.name, "task_sandbox_bypassed",
                           {{"reason", refusal.code}, {"runtime", runtime_}});
      is_noted = noted.ok();
      if (!is_noted) refusal.warnings.push_back(noted.error().text);
      return noted;
    };
    TaskAnswer answer =
        RunHostTask(home_, agent_, request_, surroundings_, begun_, note_bypass, record_);
    if (!is_noted) return stay("the audit log cannot be written");
    if (!answer.ran_on_host) return stay(answer.message);
    answer.warnings.push_back(
        Text("the task ran on the host, without isolation, by "
             "when_unavailable = \"run_unsandboxed\": ",
             refusal.message));
    return answer;
  }

  bool IsHatchOpen() const {
    Result<ConfigValue> config = ReadConfig(home_);
    return config.ok() && ReadEscapeHatches(config.value()).task;
  }

  const Home& home_;
  const Agent& agent_;
  const TaskRequest& request_;
  Surroundings& surroundings_;
  Clock::time_point begun_;
  std::string runtime_;
  std::optional<TaskRecord> record_;
};

// An agent.toml that cannot be used: whether its sandbox is on is not known, so it is.
TaskAnswer AgentRefused(const Home& home, const TaskRequest& request, const Error& error) {
  TaskAnswer answer = AnswerFor(error);
  if (!IsUnavailable(answer.code)) return answer;
  Result<ConfigValue> config = ReadConfig(home);
  const bool is_open = config.ok() && ReadEscapeHatches(config.value()).task;
  Status told = Audit(home, request.agent, "task_sandbox_unavailable",
                      {{"reason", answer.code},
                       {"runtime", std::string("unknown")},
                       {"when_unavailable", std::string(is_open ? "run_unsandboxed" : "fail")}});
  if (!told.ok()) answer.warnings.push_back(told.error().text);
  return answer;
}

// The one line that a failure has in the gateway's log. A skipped task is none: it has the line of
// its path, once.
void LogFailure(const Home& home, const std::string& agent, TaskAnswer& answer) {
  if (answer.ok() || answer.code == kSkipped) return;
  Status logged =
      AppendLog(home.fd.get(), {"task_failed",
                                agent,
                                {{"code", answer.code},
                                 {"unavailable", IsUnavailable(answer.code) ? "true" : "false"},
                                 {"message", answer.message},
                                 {"detail", answer.detail}}});
  if (!logged.ok()) answer.warnings.push_back(logged.error().text);
}

}  // namespace

std::optional<TaskAnswer> SkipTask(const TaskRequest& request, Surroundings& surroundings) {
  if (CoverageOf(request.kind) != Coverage::kSkipped) return std::nullopt;
  Result<Home> home = OpenHome(request.home, surroundings.files);
  if (!home.ok()) return std::nullopt;
  Result<Agent> agent = FindAgent(home.value(), request.agent);
  if (!agent.ok() || !agent->config.sandbox_enabled) return std::nullopt;
  return Dispatch(home.value(), agent.value(), request, surroundings, Clock::now()).Run();
}

TaskAnswer RunTask(const TaskRequest& request, Surroundings& surroundings) {
  const Clock::time_point begun = Clock::now();
  const Status prompt = CheckPrompt(request.prompt);
  Result<Home> home = OpenHome(request.home, surroundings.files);
  if (!home.ok() && prompt.ok())
    return AnswerFor(std::move(home).error().Coded("workspace_failed"));
  if (!home.ok()) return AnswerFor(prompt.error());
  Result<Agent> agent = FindAgent(home.value(), request.agent);
  std::string name = request.agent;
  TaskAnswer answer;
  if (!prompt.ok()) {
    answer = AnswerFor(prompt.error());
  } else if (agent.ok()) {
    name = agent->config.name;
    answer = Dispatch(home.value(), agent.value(), request, surroundings, begun).Run();
  } else {
    answer = AgentRefused(home.value(), request, agent.error());
  }
  LogFailure(home.value(), name, answer);
  return answer;
}

}  // namespace taskcell::gateway

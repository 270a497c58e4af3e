#include "gateway/api/service.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <exception>

#include "gateway/config/agent_config.h"
#include "gateway/config/team_gate.h"
#include "gateway/egress/start_thread.h"
#include "gateway/ledger/audit.h"
#include "gateway/ledger/interrupt.h"
#include "gateway/ledger/owner.h"
#include "gateway/task/answer_json.h"
#include "gateway/task/prompt.h"
#include "gateway/task/run_directory.h"
#include "gateway/task/task_record.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kWorkspaceFailed = "workspace_failed";
constexpr std::size_t kMaxLogBytes = 64U << 10U;  // of one task

Status CheckSubmission(const Submission& submission) {
  TRY(CheckPrompt(submission.prompt));
  if (Trim(submission.agent).empty() || submission.agent.size() > kMaxAgentNameBytes)
    return Error(Kind::kUsage, Text("an agent's name has 1 to ", kMaxAgentNameBytes, " bytes"))
        .Coded("agent_not_found");
  return CheckTeamRole(submission.team_role);
}

TaskRequest RequestFor(const Home& home, Submission submission) {
  TaskRequest request;
  request.home = home.path;
  request.agent = std::move(submission.agent);
  request.prompt = std::move(submission.prompt);
  request.kind = submission.kind;
  request.team_role = std::move(submission.team_role);
  request.require_cell = submission.require_cell;
  return request;
}

bool IsFinal(TaskState state) {
  return state != TaskState::kAccepted && state != TaskState::kRunning;
}

}  // namespace

Service::Service(const Home& home, Runner runner, Skipper skipper, Ledger ledger, std::string owner,
                 UniqueFd wake)
    : home_(home),
      runner_(std::move(runner)),
      skipper_(std::move(skipper)),
      owner_(std::move(owner)),
      wake_(std::move(wake)),
      ledger_(std::move(ledger)) {}

Result<std::unique_ptr<Service>> Service::Make(const Home& home, Runner runner, Skipper skipper) {
  Ledger ledger = TRY(Ledger::Open(home.fd.get(), home.path));
  TRY(EndInterrupted(ledger, home.fd.get(), UnixMilliseconds()));
  std::string owner = TRY(OwnerOfThisProcess());
  UniqueFd wake = TRY(sys::MakeEvent());
  return std::unique_ptr<Service>(new Service(home, std::move(runner), std::move(skipper),
                                              std::move(ledger), std::move(owner),
                                              std::move(wake)));
}

Service::~Service() {
  Stop();
  CancelAll();
  EndWatches();
  for (auto& [id, live] : live_)
    if (live->thread.joinable()) live->thread.join();
}

Status Service::CheckAccepting() {
  std::lock_guard lock(mutex_);
  if (accepting_) return Ok();
  return Error(Kind::kSystem, "the gateway is being stopped; try again when it is back")
      .Coded("gateway_stopping");
}

Result<std::optional<TaskAnswer>> Service::Skip(const Submission& submission) {
  TRY(CheckSubmission(submission));
  TRY(CheckAccepting());
  if (!skipper_) return std::optional<TaskAnswer>();
  std::optional<TaskAnswer> answer = skipper_(RequestFor(home_, submission));
  if (answer.has_value()) answer->by_gateway = true;
  return answer;
}

Result<std::string> Service::Submit(const Submission& submission) {
  TRY(CheckSubmission(submission));
  TRY(CheckAccepting());
  TaskRow task;
  task.id = TRY(MakeRunId());
  task.agent = submission.agent;
  task.kind = TaskKindName(submission.kind);
  task.accepted_ms = UnixMilliseconds();
  {
    std::lock_guard lock(ledger_mutex_);
    Status accepted =
        ledger_.Accept(task, submission.prompt, {submission.team_role, submission.require_cell});
    if (!accepted.ok() && accepted.error().code.empty())
      return std::move(accepted).error().Coded(kWorkspaceFailed);
    TRY(std::move(accepted));
  }
  (void)sys::SignalEvent(wake_.get());  // ignoring: it is looked for every second as well
  return task.id;
}

Result<std::optional<TaskState>> Service::Cancel(const std::string& id) {
  // Held throughout: a task must not begin to run unseen in between.
  std::lock_guard ledger_lock(ledger_mutex_);
  const std::optional<TaskRow> row = TRY(ledger_.Task(id));
  if (!row.has_value()) return std::optional<TaskState>();
  const int64_t now_ms = UnixMilliseconds();
  const bool waited = TRY(ledger_.CancelWaiting(id, now_ms));
  if (waited)
    metrics_.Count({TaskState::kCancelled, "stopped", now_ms - row->accepted_ms, 0}, TaskUsage());
  std::lock_guard lock(mutex_);
  if (waited) Touch(id);
  auto live = live_.find(id);
  if (live != live_.end()) TRY(sys::SignalEvent(live->second->cancel.get()));
  return std::optional<TaskState>(row->state);
}

Result<std::vector<TaskRow>> Service::Tasks(int64_t limit) {
  std::lock_guard lock(ledger_mutex_);
  return ledger_.Tasks(limit);
}

Result<std::optional<TaskView>> Service::Find(const std::string& id) {
  std::lock_guard lock(ledger_mutex_);
  std::optional<TaskRow> row = TRY(ledger_.Task(id));
  if (!row.has_value()) return std::optional<TaskView>();
  TaskView view;
  view.runs = TRY(ledger_.Runs(id));
  view.answer = TRY(LaterAnswer(ledger_, *row));
  view.row = *std::move(row);
  return std::optional<TaskView>(std::move(view));
}

Result<std::string> Service::Log(const std::string& id) {
  {
    std::lock_guard lock(mutex_);
    auto live = live_.find(id);
    if (live != live_.end()) return live->second->log;
  }
  std::lock_guard lock(ledger_mutex_);
  return ledger_.Log(id);
}

Result<Service::Load> Service::Measure() {
  Load load;
  {
    std::lock_guard lock(ledger_mutex_);
    load.waiting = TRY(ledger_.Waiting());
  }
  std::lock_guard lock(mutex_);
  load.running = live_.size();
  load.accepting = accepting_;
  return load;
}

std::size_t Service::Running() {
  std::lock_guard lock(mutex_);
  return live_.size();
}

void Service::Stop() {
  std::lock_guard lock(mutex_);
  accepting_ = false;
}

void Service::CancelAll() {
  std::lock_guard lock(mutex_);
  // ignoring: an eventfd at its first signals takes them
  for (auto& [id, live] : live_) (void)sys::SignalEvent(live->cancel.get());
}

Status Service::Dispatch(uint64_t max_concurrent) {
  std::array<char, sizeof(uint64_t)> signals;
  (void)sys::Read(wake_.get(), signals);  // ignoring: there may have been none
  TRY(Collect());
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (!accepting_ || live_.size() >= max_concurrent) return Ok();
    }
    // Before the task is taken: from then on somebody must answer for it.
    auto live = std::make_unique<Live>();
    live->cancel = TRY(sys::MakeEvent());
    std::lock_guard lock(ledger_mutex_);
    std::optional<ClaimedTask> task = TRY(ledger_.Claim(owner_, UnixMilliseconds()));
    if (!task.has_value()) return Ok();
    Start(*std::move(task), std::move(live));
  }
}

// With ledger_mutex_ held: see Cancel.
void Service::Start(ClaimedTask task, std::unique_ptr<Live> live) {
  const std::string id = task.row.id;
  std::lock_guard lock(mutex_);
  Live& entry = *live_.emplace(id, std::move(live)).first->second;
  Touch(id);
  Result<std::thread> thread =
      StartThread([this, task = std::move(task), &entry] { Run(task, entry); });
  if (thread.ok()) {
    entry.thread = std::move(thread).value();
    return;
  }
  TaskAnswer answer = AnswerFor(thread.error());
  answer.by_gateway = true;
  answer.task_id = id;
  entry.end = TaskEnd{StateFor(answer),   answer.code,        answer.message,
                      UnixMilliseconds(), AnswerJson(answer), ""};
}

void Service::Note(const std::string& id, Live& live, std::string_view line) {
  constexpr std::size_t kToSeconds = 19;
  const std::string text =
      Text(Rfc3339(WallClock::now()).substr(0, kToSeconds), "Z ", Printable(line), "\n");
  std::lock_guard lock(mutex_);
  if (live.log.size() + text.size() > kMaxLogBytes) return;
  live.log += text;
  Touch(id);
}

void Service::Run(const ClaimedTask& task, Live& live) {
  const std::string& id = task.row.id;
  TaskAnswer answer;
  Result<TaskKind> kind = ParseTaskKind(task.row.kind);
  if (kind.ok()) {
    TaskRequest request = RequestFor(home_, {task.row.agent, kind.value(), task.prompt,
                                             task.terms.team_role, task.terms.require_cell});
    request.id = id;
    try {
      answer =
          runner_(request, live.cancel.get(), [&](std::string_view line) { Note(id, live, line); });
    } catch (const std::exception& error) {  // libraries throw where memory runs out
      answer = AnswerFor(Error(
          Kind::kSystem, Text("the gateway ran out of something it needs (", error.what(), ")")));
    }
  } else {
    answer = AnswerFor(kind.error());
  }
  answer.task_id = id;
  answer.by_gateway = true;
  for (const std::string& warning : answer.warnings) Note(id, live, Text("warning: ", warning));
  Note(id, live, answer.ok() ? "done" : Text(answer.code, ": ", answer.message));
  if (!answer.ran_on_host) answer.receipt_json.clear();  // it is on disk: the answer names it
  TaskEnd end;
  end.state = StateFor(answer);
  end.code = answer.code;
  end.message = answer.message;
  end.ended_ms = UnixMilliseconds();
  end.answer = AnswerJson(answer);
  metrics_.Count({end.state, end.code, task.row.started_ms - task.row.accepted_ms,
                  std::max<int64_t>(end.ended_ms - task.row.started_ms, 1)},
                 answer.usage);
  {
    std::lock_guard lock(mutex_);
    end.log = live.log;
  }
  const bool entered = Enter(id, end).ok();
  std::lock_guard lock(mutex_);
  live.entered = entered;
  live.end = std::move(end);
  Touch(id);
  (void)sys::SignalEvent(wake_.get());  // ignoring: it is looked for every second as well
}

// An end that is there already is as good as this one: nothing ends twice.
Status Service::Enter(const std::string& id, const TaskEnd& end) {
  std::lock_guard lock(ledger_mutex_);
  Status finished = ledger_.Finish(id, end);
  if (!finished.ok() && finished.error().kind == Kind::kViolation) return Ok();
  return finished;
}

Status Service::Collect() {
  std::vector<std::pair<std::string, TaskEnd>> late;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, live] : live_)
      if (live->end.has_value() && !live->entered) late.emplace_back(id, *live->end);
  }
  Status entered = Ok();
  for (const auto& [id, end] : late) {
    Status done = Enter(id, end);
    std::lock_guard lock(mutex_);
    live_.find(id)->second->entered = done.ok();
    if (!done.ok()) entered = std::move(done);
  }
  std::vector<std::unique_ptr<Live>> ended;
  {
    std::lock_guard lock(mutex_);
    for (auto at = live_.begin(); at != live_.end();) {
      if (!at->second->entered) {
        ++at;
        continue;
      }
      ended.push_back(std::move(at->second));
      at = live_.erase(at);
    }
  }
  for (const std::unique_ptr<Live>& live : ended)
    if (live->thread.joinable()) live->thread.join();
  return entered;
}

void Service::Touch(const std::string& id) {
  auto [first, last] = watches_.equal_range(id);
  for (auto at = first; at != last; ++at) at->second->changed_ = true;
  changed_.notify_all();
}

void Service::EndWatches() {
  std::lock_guard lock(mutex_);
  watches_ended_ = true;
  changed_.notify_all();
}

bool Service::AwaitWatches(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, wait, [this] { return watches_.empty(); });
}

std::unique_ptr<TaskWatch> Service::Watch(const std::string& id) {
  std::unique_ptr<TaskWatch> watch(new TaskWatch(*this, id));
  std::lock_guard lock(mutex_);
  watches_.emplace(id, watch.get());
  return watch;
}

TaskWatch::TaskWatch(Service& service, std::string id) : service_(service), id_(std::move(id)) {}

TaskWatch::~TaskWatch() {
  std::lock_guard lock(service_.mutex_);
  auto [first, last] = service_.watches_.equal_range(id_);
  for (auto at = first; at != last; ++at) {
    if (at->second != this) continue;
    service_.watches_.erase(at);
    service_.changed_.notify_all();
    return;
  }
}

void TaskWatch::TakeLines(std::string_view log, News& news) {
  if (told_ >= log.size()) return;
  news.lines = log.substr(told_);
  told_ = log.size();
}

Result<TaskWatch::News> TaskWatch::Next(std::chrono::milliseconds wait) {
  News news;
  bool ended = false;
  {
    std::unique_lock lock(service_.mutex_);
    service_.changed_.wait_for(lock, wait, [&] { return changed_ || service_.watches_ended_; });
    ended = service_.watches_ended_;
    const bool changed = std::exchange(changed_, false);
    auto live = service_.live_.find(id_);
    if (live != service_.live_.end()) {
      TakeLines(live->second->log, news);
      news.state = TaskState::kRunning;
      if (live->second->end.has_value()) {
        news.state = live->second->end->state;
        news.answer = live->second->end->answer;
        news.is_over = true;
      }
      news.is_over = news.is_over || ended;
      return news;
    }
    if (!changed && !ended) {
      news.state = state_told_.value_or(TaskState::kAccepted);
      return news;
    }
  }
  const std::optional<TaskView> view = TRY(service_.Find(id_));
  if (!view.has_value())
    return Error(Kind::kUsage, Text("there is no task ", Printable(id_))).Coded("task_not_found");
  TakeLines(TRY(service_.Log(id_)), news);
  news.state = view->row.state;
  state_told_ = news.state;
  news.answer = view->answer;
  news.is_over = ended || IsFinal(news.state);
  return news;
}

}  // namespace taskcell::gateway

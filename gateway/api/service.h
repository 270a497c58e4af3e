#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "gateway/api/metrics.h"
#include "gateway/config/home.h"
#include "gateway/config/task_kind.h"
#include "gateway/ledger/ledger.h"
#include "gateway/task/task.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::gateway {

// What somebody wants done when its turn comes.
struct Submission {
  std::string agent;
  TaskKind kind = TaskKind::kBus;
  std::string prompt;
  std::string team_role = {};  // as TaskRequest has them
  bool require_cell = false;
};

// One task as the ledger knows it.
struct TaskView {
  TaskRow row;
  std::vector<RunRow> runs;
  std::string answer;  // AnswerJson; empty while there is none
};

class TaskWatch;

// The tasks of one home that wait and run: takes them in, lets them run in threads of their own
// when their turn comes, and tells how they fare. Everything that must outlive this process is in
// the ledger before anybody is told of it.
class Service {
 public:
  // Runs one task to its end. `cancel_fd` becomes readable to cancel it; `report` takes lines for a
  // person. Called in the task's thread.
  using Runner = std::function<TaskAnswer(const TaskRequest&, int cancel_fd,
                                          const std::function<void(std::string_view)>& report)>;

  // Answers a task that is not to wait since nothing is to run for it; nullopt where something is.
  // May be empty. Called by any thread.
  using Skipper = std::function<std::optional<TaskAnswer>(const TaskRequest&)>;

  // Takes the home's ledger over: what a gateway that is gone was running is interrupted, and what
  // waited still does.
  static Result<std::unique_ptr<Service>> Make(const Home& home, Runner runner,
                                               Skipper skipper = {});
  // Cancels what runs, and waits for it.
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // ---- For any thread.

  // Takes a task in and returns its id. Error codes: invalid_prompt, agent_not_found (no such name
  // can be), unknown_role, queue_full, gateway_stopping, workspace_failed.
  Result<std::string> Submit(const Submission& submission);
  // The answer of a task that is skipped, which is in no ledger; nullopt: it is to be submitted.
  // Error codes as Submit's.
  Result<std::optional<TaskAnswer>> Skip(const Submission& submission);
  // Ends a task that waits; asks one that runs to end. The state it was in; nullopt: no such task.
  Result<std::optional<TaskState>> Cancel(const std::string& id);
  Result<std::vector<TaskRow>> Tasks(int64_t limit);
  Result<std::optional<TaskView>> Find(const std::string& id);
  // One line for each step of a task so far.
  Result<std::string> Log(const std::string& id);
  // Must not outlive this object.
  std::unique_ptr<TaskWatch> Watch(const std::string& id);

  struct Load {
    std::size_t running = 0;
    int64_t waiting = 0;
    bool accepting = true;
  };
  Result<Load> Measure();
  const Metrics& metrics() const { return metrics_; }

  // ---- For the one thread that drives it.

  // Readable when Dispatch has something to do.
  int wake_fd() const { return wake_.get(); }
  // Enters ends that could not be written yet, lets go of what ended, and starts what may run with
  // at most `max_concurrent` at once. What keeps it from that is told; it is tried again.
  Status Dispatch(uint64_t max_concurrent);
  std::size_t Running();
  // From now on nothing is taken in, and nothing started.
  void Stop();
  void CancelAll();
  // Every watch ends.
  void EndWatches();
  // Waits until no watch is left: until each that ended was told what there is to tell. False where
  // one is left after `wait`.
  bool AwaitWatches(std::chrono::milliseconds wait);

 private:
  friend class TaskWatch;
  // One that runs.
  struct Live {
    UniqueFd cancel;  // eventfd
    std::thread thread;
    std::string log;
    std::optional<TaskEnd> end;
    bool entered = false;  // its end is in the ledger
  };

  Service(const Home& home, Runner runner, Skipper skipper, Ledger ledger, std::string owner,
          UniqueFd wake);
  Status CheckAccepting();
  void Start(ClaimedTask task, std::unique_ptr<Live> live);
  void Run(const ClaimedTask& task, Live& live);
  Status Enter(const std::string& id, const TaskEnd& end);
  void Note(const std::string& id, Live& live, std::string_view line);
  Status Collect();
  void Touch(const std::string& id);  // with mutex_ held

  const Home& home_;
  Runner runner_;
  Skipper skipper_;
  std::string owner_;
  UniqueFd wake_;
  std::mutex ledger_mutex_;  // taken before mutex_ where both are held
  Ledger ledger_;

  Metrics metrics_;

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::map<std::string, std::unique_ptr<Live>, std::less<>> live_;
  std::multimap<std::string, TaskWatch*, std::less<>> watches_;
  bool accepting_ = true;
  bool watches_ended_ = false;
};

// Follows one task. One thread.
class TaskWatch {
 public:
  ~TaskWatch();
  TaskWatch(const TaskWatch&) = delete;
  TaskWatch& operator=(const TaskWatch&) = delete;

  struct News {
    bool is_over = false;  // nothing more will come
    TaskState state = TaskState::kAccepted;
    std::string lines;   // of the log, whole ones that were not told yet
    std::string answer;  // AnswerJson of a task that ended; empty: this gateway ends before it
  };
  // Returns as soon as there is anything to tell, or after `wait` with nothing.
  Result<News> Next(std::chrono::milliseconds wait);

 private:
  friend class Service;
  TaskWatch(Service& service, std::string id);
  void TakeLines(std::string_view log, News& news);

  Service& service_;
  const std::string id_;
  bool changed_ = true;  // under the service's mutex
  std::size_t told_ = 0;
  std::optional<TaskState> state_told_;
};

}  // namespace taskcell::gateway

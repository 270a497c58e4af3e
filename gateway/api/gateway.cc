#include "gateway/api/gateway.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "gateway/api/api.h"
#include "gateway/api/http_server.h"
#include "gateway/api/instance.h"
#include "gateway/api/scripts.h"
#include "gateway/api/service.h"
#include "gateway/api/service_manager.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/egress/start_thread.h"
#include "gateway/intake/intake.h"
#include "gateway/task/account_list.h"
#include "gateway/task/admission.h"
#include "gateway/task/host_surroundings.h"
#include "gateway/task/sweep_home.h"
#include "launcher/base/defer.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/output.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"
#include "launcher/sys/termination.h"

namespace taskcell::gateway {
namespace {

using Clock = std::chrono::steady_clock;

// How often what could not be done is tried again.
constexpr std::chrono::milliseconds kTick{1000};

// How long what is left to be told may take at the end.
constexpr std::chrono::milliseconds kLastWordWait{5000};

// One line for the journal.
void Log(std::string_view line) { sys::PrintMessage("taskcell-gateway", Printable(line)); }

// Of what has no bound that can be read the default holds: each task is refused for it by itself.
uint64_t MaxConcurrent(const Home& home) {
  Result<ConfigValue> config = ReadConfig(home);
  if (!config.ok()) return kDefaultMaxConcurrent;
  Result<TaskcellSettings> settings = ReadTaskcellSettings(config.value());
  return settings.ok() ? settings->max_concurrent : kDefaultMaxConcurrent;
}

void SweepOnce(const Home& home) {
  Result<SweepReport> report = SweepHome(home, {std::time(nullptr), false});
  if (!report.ok()) return Log(Text("sweep: ", report.error().text));
  for (const std::string& id : report->containers) Log(Text("sweep: container ", id, ": removed"));
  for (const std::string& id : report->directories)
    Log(Text("sweep: run directory ", id, ": removed"));
  for (const std::string& what : report->expired) Log(Text("sweep: ", what, ": removed"));
  for (const auto& [reason, count] : report->failures)
    Log(Text("sweep: cleanup_failed: ", reason, " (", count, ")"));
}

// Tells each trouble when it begins, not every time.
class TroubleLog {
 public:
  void Tell(std::vector<std::string> troubles) {
    for (const std::string& trouble : troubles)
      if (std::find(told_.begin(), told_.end(), trouble) == told_.end()) Log(trouble);
    told_ = std::move(troubles);
  }

 private:
  std::vector<std::string> told_;
};

// Does something every so often, beside everything else: an engine, or another program that holds
// a file, may take its time.
class Periodic {
 public:
  Periodic(std::chrono::seconds every, std::function<void()> work)
      : every_(every), work_(std::move(work)) {}
  // Waits for what is being done.
  ~Periodic() {
    if (thread_.joinable()) thread_.join();
  }
  Periodic(const Periodic&) = delete;
  Periodic& operator=(const Periodic&) = delete;

  void WorkWhenDue() {
    if (running_ || Clock::now() < due_) return;
    if (thread_.joinable()) thread_.join();
    due_ = Clock::now() + every_;
    running_ = true;
    Result<std::thread> thread = StartThread([this] {
      work_();
      running_ = false;
    });
    if (thread.ok()) {
      thread_ = std::move(thread).value();
    } else {
      running_ = false;
      Log(thread.error().text);
    }
  }

 private:
  std::chrono::seconds every_;
  std::function<void()> work_;
  Clock::time_point due_;  // at once
  std::atomic<bool> running_ = false;
  std::thread thread_;
};

Service::Runner RunnerIn(HostSurroundings& host) {
  return [&host](const TaskRequest& request, int cancel_fd,
                 const std::function<void(std::string_view)>& report) {
    Surroundings surroundings = host.For(cancel_fd);
    surroundings.report_progress = report;
    return RunTask(request, surroundings);
  };
}

Service::Skipper SkipperIn(HostSurroundings& host) {
  return [&host](const TaskRequest& request) {
    Surroundings surroundings = host.For(-1);
    return SkipTask(request, surroundings);
  };
}

Scripts::Runner ScriptRunnerIn(HostSurroundings& host) {
  return [&host](const ScriptRequest& request, int cancel_fd) {
    Surroundings surroundings = host.For(cancel_fd);
    return RunScript(request, surroundings);
  };
}

// The one thread that drives everything, from the start to the last task.
class Drive {
 public:
  Drive(const Home& home, Service& service, Scripts& scripts, Intake& intake,
        const ServiceManager& manager, int termination_fd)
      : home_(home),
        service_(service),
        scripts_(scripts),
        intake_(intake),
        manager_(manager),
        termination_fd_(termination_fd) {}

  void Serve() {
    Periodic sweeper(kSweepEvery, [this] { SweepOnce(home_); });
    Periodic looker(kLookEvery, [this] { queue_troubles_.Tell(intake_.Look(true)); });
    while (!terminated_) {
      sweeper.WorkWhenDue();
      looker.WorkWhenDue();
      Status dispatched = service_.Dispatch(MaxConcurrent(home_));
      TellOnce(dispatched);
      Wait();
    }
  }

  // Until nothing runs, or for as long as `drain`; a further signal ends it at once.
  void Drain(std::chrono::seconds drain) {
    service_.Stop();
    scripts_.Stop();
    manager_.Tell(Text("STOPPING=1\nSTATUS=", Running(), " tasks run to their end"));
    Log(Text("stopping: ", Running(), " tasks run to their end, for at most ", drain.count(),
             " s"));
    terminated_ = false;
    Until(Clock::now() + drain);
    if (Running() > 0) {
      Log(Text(Running(), " tasks are cancelled"));
      service_.CancelAll();
      scripts_.CancelAll();
      terminated_ = false;
      Until(Clock::now() + kCancelWait);
    }
    queue_troubles_.Tell(intake_.Look(false));
  }

 private:
  // Of scripts, which wake nobody when they end, it is looked at every tick.
  void Until(Clock::time_point deadline) {
    while (Running() > 0 && !terminated_ && Clock::now() < deadline) {
      TellOnce(service_.Dispatch(0));
      if (Running() > 0) Wait();
    }
  }

  std::size_t Running() { return service_.Running() + scripts_.Running(); }

  void Wait() {
    std::array<struct pollfd, 2> entries = {
        {{termination_fd_, POLLIN, 0}, {service_.wake_fd(), POLLIN, 0}}};
    Result<int> ready = sys::PollAll(entries, static_cast<int>(kTick.count()));
    if (ready.ok() && entries[0].revents != 0) {
      std::array<char, 16> signals;
      (void)sys::Read(termination_fd_, signals);  // ignoring: one more look at it
      terminated_ = true;
    }
    if (!manager_.watchdog().has_value() || Clock::now() < watchdog_due_) return;
    manager_.Tell("WATCHDOG=1");
    watchdog_due_ = Clock::now() + *manager_.watchdog();
  }

  void TellOnce(const Status& dispatched) {
    troubles_.Tell(dispatched.ok() ? std::vector<std::string>()
                                   : std::vector<std::string>{dispatched.error().text});
  }

  const Home& home_;
  Service& service_;
  Scripts& scripts_;
  Intake& intake_;
  const ServiceManager& manager_;
  int termination_fd_;
  bool terminated_ = false;
  Clock::time_point watchdog_due_;  // at once
  TroubleLog troubles_;
  TroubleLog queue_troubles_;
};

}  // namespace

Status RunGateway(const GatewayOptions& options) {
  TRY(sys::SetNotDumpable());
  // The configuration is read afresh by every task: there is nothing to be told.
  (void)std::signal(SIGHUP, SIG_IGN);  // ignoring: cannot fail for this one
  UniqueFd termination = TRY(sys::CatchTermination());
  const Environment environment = ProcessEnvironment();
  const ServiceManager manager = ServiceManager::In(environment);
  const std::string path = TRY(ChooseHome(options.home, environment));
  const Home home = TRY(OpenHome(path));
  Instance instance = TRY(ClaimHome(home));
  Defer release([&home] { ReleaseHome(home); });
  std::unique_ptr<HostSurroundings> host = TRY(HostSurroundings::Make());
  std::unique_ptr<Service> service = TRY(Service::Make(home, RunnerIn(*host), SkipperIn(*host)));
  std::unique_ptr<Intake> intake = TRY(Intake::Make(home));
  std::unique_ptr<Scripts> scripts =
      TRY(Scripts::Make(ScriptRunnerIn(*host), [&home] { return MaxConcurrent(home); }));
  Api api(*service, *scripts, home.path,
          [&] { return ListAccounts(home, environment, std::time(nullptr)); });
  std::unique_ptr<HttpServer> server =
      TRY(HttpServer::Start(std::move(instance.listener),
                            [&api](const ApiRequest& request) { return api.Answer(request); }));
  manager.Tell("READY=1");
  Log(Text("serves ", home.path));
  Drive drive(home, *service, *scripts, *intake, manager, termination.get());
  drive.Serve();
  drive.Drain(options.drain);
  service->EndWatches();
  // What became of the tasks is on its way to whoever waits for them; to be cut off by one that
  // does not read it.
  if (!service->AwaitWatches(kLastWordWait)) Log("somebody did not take what became of a task");
  server.reset();
  Log("stopped");
  if (service->Running() == 0) return Ok();
  // Their threads hang: they cannot be waited for. The cells die when this process is gone, and the
  // next gateway tells that they were interrupted.
  ReleaseHome(home);
  sys::ExitNow(1);
  return Ok();
}

}  // namespace taskcell::gateway

#include "tests/bench/measure.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::bench {
namespace {

constexpr int kFailed = 254;  // in the child, before exec
constexpr int kResidentWaitMs = 3000;
constexpr int kLeftBehindWaitMs = 10;

[[noreturn]] void Become(const Contender& contender, Ids user, int error_fd) {
  if (!contender.as_root) {
    test::EnterDelegatedCgroup(user.uid);
    if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
        ::setresuid(user.uid, user.uid, user.uid) != 0 || ::chdir("/") != 0)
      ::_exit(kFailed);
  }
  if (error_fd >= 0 && (::dup2(error_fd, 1) < 0 || ::dup2(error_fd, 2) < 0)) ::_exit(kFailed);
  if (contender.prepare && !contender.prepare()) ::_exit(kFailed);
  if (contender.body) ::_exit(contender.body());
  std::vector<char*> arguments;
  for (const std::string& each : contender.argv)
    arguments.push_back(const_cast<char*>(each.c_str()));  // NOLINT: execvp's signature
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  ::_exit(127);
}

// What a program prints is not part of what is measured, nor of the table.
int Nowhere() {
  static const UniqueFd kNull = sys::Open("/dev/null", O_WRONLY).value();
  return kNull.get();
}

int WaitFor(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

double Microseconds(const struct timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
}

struct OneRun {
  int status = -1;
  double wall_us = 0;
  double cpu_us = 0;
  double faults = 0;
};

OneRun RunOnce(const Contender& contender, Ids user) {
  auto start = std::chrono::steady_clock::now();
  pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) Become(contender, user, Nowhere());
  int status = 0;
  struct rusage usage = {};
  OneRun run;
  if (::wait4(child, &status, 0, &usage) == child)
    run.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  run.wall_us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  run.cpu_us = Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime);
  run.faults = static_cast<double>(usage.ru_minflt + usage.ru_majflt);
  // What it left behind comes to us, and is counted if it ends: podman leaves a process that stays.
  for (int waited_ms = 0; waited_ms < kLeftBehindWaitMs;) {
    pid_t ended = ::wait4(-1, &status, WNOHANG, &usage);
    if (ended < 0) break;
    if (ended > 0) {
      run.cpu_us += Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime);
    } else {
      ::usleep(1000);
      ++waited_ms;
    }
  }
  return run;
}

void EndWhatStayed() {
  std::ifstream children(Text("/proc/self/task/", ::getpid(), "/children"));
  for (pid_t child = 0; children >> child;) {
    ::kill(child, SIGKILL);
    (void)WaitFor(child);
  }
}

// The first run of each, with its output kept for the message.
std::string TryOut(const Contender& contender, Ids user) {
  UniqueFd output = sys::MakeMemfd("bench-output", 0).value();
  pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) Become(contender, user, output.get());
  int status = WaitFor(child);
  if (status == 0) return "";
  std::array<char, 512> text = {};
  ssize_t got = ::pread(output.get(), text.data(), text.size(), 0);
  return Text("status ", status, ": ",
              Printable(Trim(std::string_view(
                  text.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))))));
}

// The process named `comm` among the descendants of `parent`, or 0.
pid_t FindDescendant(pid_t parent, const std::string& comm, int depth = 0) {
  std::string own;
  std::getline(std::ifstream(Text("/proc/", parent, "/comm")), own);
  if (own == comm) return parent;
  if (depth == 8) return 0;
  std::ifstream children(Text("/proc/", parent, "/task/", parent, "/children"));
  for (pid_t child = 0; children >> child;) {
    if (pid_t found = FindDescendant(child, comm, depth + 1); found != 0) return found;
  }
  return 0;
}

std::optional<uint64_t> HighWater(pid_t pid) {
  std::ifstream status(Text("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() == 3 && words[0] == "VmHWM:") return ParseUnsigned(words[1]);
  }
  return std::nullopt;
}

// Of the largest of the processes named `comm` among `parent` and its descendants.
std::optional<uint64_t> LargestHighWater(pid_t parent, const std::string& comm, int depth = 0) {
  std::string own;
  std::getline(std::ifstream(Text("/proc/", parent, "/comm")), own);
  std::optional<uint64_t> largest = own == comm ? HighWater(parent) : std::nullopt;
  if (depth == 8) return largest;
  std::ifstream children(Text("/proc/", parent, "/task/", parent, "/children"));
  for (pid_t child = 0; children >> child;)
    largest = std::max(largest, LargestHighWater(child, comm, depth + 1));
  return largest;
}

std::optional<Resident> ResidentNow(pid_t pid) {
  std::ifstream rollup(Text("/proc/", pid, "/smaps_rollup"));
  std::map<std::string, uint64_t> sizes;
  for (std::string line; std::getline(rollup, line);) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() == 3 && words[2] == "kB")
      sizes[std::string(words[0])] = ParseUnsigned(words[1]).value_or(0);
  }
  if (sizes["Rss:"] == 0) return std::nullopt;
  // Private_Dirty also has pages of a program that was copied just now.
  return Resident{sizes["Rss:"], sizes["Anonymous:"]};
}

}  // namespace

double Percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

std::vector<Timing> Compare(const std::vector<Contender>& contenders, int rounds, Ids user) {
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);  // ignoring: then only what is waited for is counted
  std::vector<Timing> timings(contenders.size());
  for (std::size_t i = 0; i < contenders.size(); ++i)
    timings[i].failure = TryOut(contenders[i], user);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      if (!timings[i].failure.empty()) continue;
      OneRun run = RunOnce(contenders[i], user);
      timings[i].wall_us.push_back(run.wall_us);
      timings[i].cpu_us.push_back(run.cpu_us);
      timings[i].faults.push_back(run.faults);
      if (run.status != 0) timings[i].failure = Text("status ", run.status, " in round ", round);
    }
  }
  EndWhatStayed();
  return timings;
}

std::optional<test::CallCount> CountCalls(const Contender& contender, Ids user) {
  if (contender.body) return std::nullopt;
  test::CallCount count = test::CountCalls([&] { Become(contender, user, Nowhere()); });
  if (count.status != 0) return std::nullopt;
  return count;
}

std::optional<uint64_t> CountInstructions(const Contender& contender, Ids user) {
  sys::Pipe go = sys::MakePipe().value();
  pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) {
    go.write_end.Reset();
    char byte = 0;
    if (::read(go.read_end.get(), &byte, 1) == 1) Become(contender, user, Nowhere());
    ::_exit(kFailed);
  }
  struct perf_event_attr wanted = {};
  wanted.size = sizeof wanted;
  wanted.type = PERF_TYPE_HARDWARE;
  wanted.config = PERF_COUNT_HW_INSTRUCTIONS;
  wanted.disabled = 1;
  wanted.enable_on_exec = 1;
  wanted.inherit = 1;  // by all it starts
  wanted.exclude_kernel = 1;
  const long opened = ::syscall(SYS_perf_event_open, &wanted, child, -1, -1, PERF_FLAG_FD_CLOEXEC);
  const UniqueFd counter(static_cast<int>(opened));
  if (counter.valid()) (void)sys::WriteAll(go.write_end.get(), "g");  // ignoring: it ends then
  go.write_end.Reset();
  const int status = WaitFor(child);
  uint64_t count = 0;
  if (status != 0 || ::read(counter.get(), &count, sizeof count) != sizeof count)
    return std::nullopt;
  return count;
}

std::optional<uint64_t> ResidentKiB(const Contender& contender, Ids user, const std::string& comm) {
  pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) Become(contender, user, Nowhere());
  std::optional<uint64_t> largest;
  for (int waited_ms = 0; waited_ms < kResidentWaitMs; ++waited_ms) {
    largest = std::max(largest, LargestHighWater(child, comm));
    if (::waitpid(child, nullptr, WNOHANG) == child) return largest;
    ::usleep(1000);
  }
  ::kill(child, SIGKILL);
  (void)WaitFor(child);
  return largest;
}

std::optional<Resident> WhileItSleeps(const Contender& contender, Ids user,
                                      const std::string& comm) {
  pid_t child = ::fork();
  if (child < 0) std::abort();
  if (child == 0) Become(contender, user, Nowhere());
  std::vector<double> resident;
  std::vector<double> dirty;
  bool ended = false;
  for (int waited_ms = 0; waited_ms < kResidentWaitMs && !ended; ++waited_ms) {
    pid_t pid = FindDescendant(child, comm);
    if (std::optional<Resident> now = pid != 0 ? ResidentNow(pid) : std::nullopt) {
      resident.push_back(static_cast<double>(now->kib));
      dirty.push_back(static_cast<double>(now->private_dirty_kib));
    }
    ended = ::waitpid(child, nullptr, WNOHANG) == child;
    ::usleep(1000);
  }
  if (!ended) {
    ::kill(child, SIGKILL);
    (void)WaitFor(child);
  }
  if (resident.empty()) return std::nullopt;
  return Resident{static_cast<uint64_t>(Percentile(std::move(resident), 0.5)),
                  static_cast<uint64_t>(Percentile(std::move(dirty), 0.5))};
}

}  // namespace taskcell::bench

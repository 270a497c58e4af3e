// How long it takes to start /bin/true in a cell and be rid of it, side by side with what people
// use today. Usage: taskcell-bench [--starts | --counted] BIN_DIR USER WORK ROUNDS [SOCKET IMAGE];
// started as root by ./dev bench.
//   --starts  the starts alone, in few rounds: where a clock tells little
//   --counted the same where a clock counts instructions, a nanosecond each (QEMU's -icount)
//   BIN_DIR   taskcell-launch and taskcell-init, where USER may execute them
//   USER      the unprivileged user with delegated cgroups
//   WORK      what tests/support/bench_ground.sh makes, and homes for the tasks
#include <pwd.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "launcher/base/text.h"
#include "tests/bench/engine_calls.h"
#include "tests/bench/measure.h"
#include "tests/bench/start_tables.h"

namespace taskcell::bench {
namespace {

constexpr int kFewestRounds = 50;
constexpr int kFewestIndicative = 3;
constexpr int kLiveRounds = 10;  // each takes about a second

struct Setting {
  std::string bin;
  std::string work;
  std::string rootfs;
  std::string home;
  Ids user;
  int rounds = 0;
  bool starts_only = false;
  bool clock_counts = false;
  std::string socket;  // empty: no engine
  std::string image;
};

using Argv = std::vector<std::string>;

Argv Concat(Argv first, const Argv& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Argv Launch(const Setting& setting, const Argv& root, const Argv& command) {
  Argv argv = {
      setting.bin + "/taskcell-launch", "--memory", "64M", "--pids", "32", "--cpus", "0.5"};
  return Concat(Concat(Concat(argv, root), {"--net", "none", "--"}), command);
}

// A whole task through the gateway's pipeline: admission, snapshot, cell, attestation, one model
// call over the broker, reply, receipt.
Argv Task(const Setting& setting, const char* engine) {
  return {setting.bin + "/taskcell",  "run", "bench", "hello", "--home",
          setting.work + "/" + engine};
}

// What the launcher's host root shows, given to bwrap by hand.
Argv BwrapHostRoot() {
  Argv argv = {"bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr"};
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    struct stat info = {};
    std::string path = Text("/", name);
    if (::lstat(path.c_str(), &info) != 0) continue;
    if (S_ISLNK(info.st_mode))
      argv = Concat(argv, {"--symlink", Text("usr/", name), path});
    else
      argv = Concat(argv, {"--ro-bind", path, path});
  }
  for (const char* file : {"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache"})
    argv = Concat(argv, {"--ro-bind-try", file, file});
  return Concat(argv,
                {"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/workspace"});
}

Argv BwrapRootfs(const Setting& setting) {
  return {"bwrap", "--unshare-all", "--ro-bind", setting.rootfs, "/",       "--proc",    "/proc",
          "--dev", "/dev",          "--tmpfs",   "/tmp",         "--tmpfs", "/workspace"};
}

void PrintTimes(const std::vector<Contender>& contenders, const std::vector<Timing>& timings,
                const std::vector<std::size_t>& baseline, Ids user) {
  std::printf("%-40s %9s %9s %9s %7s %9s %7s %7s\n", "", "median us", "least", "p95", "ratio",
              "cpu us", "ratio", "calls");
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const Timing& own = timings[i];
    const Timing& base = timings[baseline[i]];
    if (!own.failure.empty()) {
      std::printf("%-40s not measured: %s\n", contenders[i].name.c_str(), own.failure.c_str());
      continue;
    }
    bool comparable = base.failure.empty();
    std::optional<test::CallCount> count = CountCalls(contenders[i], user);
    std::printf(
        "%-40s %9.0f %9.0f %9.0f %7s %9.0f %7s %7s\n", contenders[i].name.c_str(),
        Percentile(own.wall_us, 0.5), Percentile(own.wall_us, 0), Percentile(own.wall_us, 0.95),
        comparable ? Ratio(own.wall_us, base.wall_us).c_str() : "-", Percentile(own.cpu_us, 0.5),
        comparable ? Ratio(own.cpu_us, base.cpu_us).c_str() : "-",
        count ? Text(count->calls).c_str() : "-");
  }
}

struct Goal {
  const char* name;
  const Started& other;
  double most;
};

void PrintGoals(const Started& launch, Clock clock, const std::vector<Goal>& goals) {
  if (!launch.timing.failure.empty()) return;
  std::printf("\ntaskcell-launch, rootfs, medians:\n");
  for (const Goal& goal : goals) {
    if (!goal.other.timing.failure.empty()) continue;
    if (clock == Clock::kInstructions)
      std::printf("  instructions %s x;",
                  Ratio(launch.timing.cpu_us, goal.other.timing.cpu_us).c_str());
    if (clock != Clock::kTime)
      std::printf(" system calls %s x; time, indicative (emulated):",
                  RatioOfCalls(launch, goal.other).c_str());
    std::printf(" %s x %s (wanted: at most %.1f)\n",
                Ratio(launch.timing.wall_us, goal.other.timing.wall_us).c_str(), goal.name,
                goal.most);
  }
}

// `live` breaks each limit, some of which takes its time by design: measured by itself.
void PrintProbeGoals(const Setting& setting, const Timing& podman_info, const Timing& probe) {
  constexpr double kUsPerMs = 1000;
  std::printf("\ntaskcell-probe, medians:\n");
  if (probe.failure.empty()) {
    std::printf("  host: %.0f ms (wanted: at most 150)", Percentile(probe.wall_us, 0.5) / kUsPerMs);
    if (podman_info.failure.empty()) {
      std::printf(", %s x podman info (wanted: at most 0.5)",
                  Ratio(probe.wall_us, podman_info.wall_us).c_str());
    }
    std::printf("\n");
  }
  Contender live = {"", {setting.bin + "/taskcell-probe", "live", "--quiet"}, false, {}};
  Timing timing = Compare({live}, kLiveRounds, setting.user)[0];
  if (!timing.failure.empty()) {
    std::printf("  live: not measured: %s\n", timing.failure.c_str());
    return;
  }
  std::printf("  live, %d rounds: %.0f ms (wanted: at most 2000)\n", kLiveRounds,
              Percentile(timing.wall_us, 0.5) / kUsPerMs);
}

// `argv` run by `workers` shells at once, `each` times by every one.
Contender Crowd(const Argv& argv, int workers, int each) {
  std::string command;
  for (const std::string& word : argv) command += ShellWord(word) + " ";
  std::string script = Text("work() { i=0; while [ $i -lt ", each, " ]; do ", command,
                            "|| exit 1; i=$((i+1)); done; }; n=0; while [ $n -lt ", workers,
                            " ]; do work & pids=\"$pids $!\"; n=$((n+1)); done; "
                            "for p in $pids; do wait $p || exit 1; done");
  return {"", {"/bin/sh", "-c", script}, false, {}};
}

void PrintCrowds(const Setting& setting, const Timing& alone) {
  constexpr int kRounds = 5;
  constexpr int kAtOnce = 200;
  constexpr int kWorkers = 2;
  constexpr int kEach = 50;
  constexpr double kUsPerSecond = 1e6;
  const Argv launch = Launch(setting, {"--rootfs", setting.rootfs}, {"/bin/true"});
  std::vector<Timing> timings =
      Compare({Crowd(launch, kAtOnce, 1), Crowd(launch, kWorkers, kEach),
               Crowd(Concat(BwrapRootfs(setting), {"/bin/true"}), kWorkers, kEach)},
              kRounds, setting.user);
  std::printf("\nmany at once, rootfs, medians of %d rounds:\n", kRounds);
  for (const Timing& timing : timings) {
    if (timing.failure.empty()) continue;
    std::printf("  not measured: %s\n", timing.failure.c_str());
    return;
  }
  std::printf("  %d launches at once: %.0f ms", kAtOnce,
              Percentile(timings[0].wall_us, 0.5) / 1000);
  if (alone.failure.empty()) {
    std::printf(", processor time of each %.2f x one alone (wanted: at most 1.5)",
                Percentile(timings[0].cpu_us, 0.5) / kAtOnce / Percentile(alone.cpu_us, 0.5));
  }
  auto a_second = [](const Timing& timing) {
    return kWorkers * kEach * kUsPerSecond / Percentile(timing.wall_us, 0.5);
  };
  std::printf("\n  by %d workers: %.0f launches a second, %.2f x bwrap (wanted: at least 1.5)\n",
              kWorkers, a_second(timings[1]), a_second(timings[1]) / a_second(timings[2]));
}

void PrintSizes(const Setting& setting) {
  std::printf("\n%-40s %9s %9s %9s  (wanted, asleep: at most 1024 and 512)\n", "", "disk KiB",
              "RSS KiB", "dirty KiB");
  Contender sleeping = {
      "", Launch(setting, {"--rootfs", setting.rootfs}, {"/bin/sleep", "0.3"}), false, {}};
  struct Row {
    const char* name;
    const char* comm;  // as the kernel cuts it
  };
  for (const Row& row :
       {Row{"taskcell-launch", "taskcell-launch"}, Row{"taskcell-init", "taskcell-init"}}) {
    struct stat info = {};
    std::string path = setting.bin + "/" + row.name;
    if (::stat(path.c_str(), &info) != 0) continue;
    std::optional<Resident> resident = WhileItSleeps(sleeping, setting.user, row.comm);
    std::printf("%-40s %9lld %9s %9s\n", row.name, static_cast<long long>(info.st_size / 1024),
                resident ? Text(resident->kib).c_str() : "-",
                resident ? Text(resident->private_dirty_kib).c_str() : "-");
  }
}

// crun takes no host that has both versions of cgroups, for the mount of the newer alone: where it
// is not in sight crun sets its limits on the others. In a mount namespace of its own.
bool HideUnifiedBesideV1() {
  constexpr char kUnified[] = "/sys/fs/cgroup/unified";
  constexpr long kCgroup2 = 0x63677270;
  struct statfs info = {};
  if (::statfs(kUnified, &info) != 0 || info.f_type != kCgroup2) return true;
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::umount2(kUnified, MNT_DETACH) == 0;
}

// Where among the starts each is that others are compared with.
constexpr std::size_t kFloor = 1;
constexpr std::size_t kBwrapRootfs = 2;
constexpr std::size_t kLaunchRootfs = 3;
constexpr std::size_t kBwrapHost = 5;
constexpr std::size_t kRunc = 7;
constexpr std::size_t kCrun = 8;

std::vector<StartRow> Starts(const Setting& setting) {
  const Argv kTrue = {"/bin/true"};
  const Argv kRootfs = {"--rootfs", setting.rootfs};
  auto row = [](const char* name, Argv argv, std::size_t baseline, bool as_root = false) {
    return StartRow{{name, std::move(argv), as_root, {}, {}}, baseline};
  };
  return {
      row("fork and exec alone", kTrue, kBwrapRootfs),
      row("the floor: the same namespaces, a bind, proc, exec, nothing else",
          {setting.work + "/floor", setting.rootfs, "/bin/true"}, kBwrapRootfs),
      row("`bwrap --unshare-all`, a root directory", Concat(BwrapRootfs(setting), kTrue),
          kBwrapRootfs),
      row("`taskcell-launch`, all limits, the same directory", Launch(setting, kRootfs, kTrue),
          kBwrapRootfs),
      row("the same with a subordinate id (newuidmap)",
          Launch(setting, Concat({"--userns=subids"}, kRootfs), kTrue), kBwrapRootfs),
      row("`bwrap --unshare-all`, the host's /usr", Concat(BwrapHostRoot(), kTrue), kBwrapHost),
      row("`taskcell-launch`, all limits, the host's /usr", Launch(setting, {"--host-root"}, kTrue),
          kBwrapHost),
      row("`runc run`, the same limits, as root",
          {"runc", "run", "--bundle", setting.work + "/bundle", "taskcell-bench"}, kBwrapRootfs,
          true),
      {{"`crun run`, the same limits, as root",
        {"crun", "run", "--bundle", setting.work + "/bundle", "taskcell-bench"},
        true,
        {},
        HideUnifiedBesideV1},
       kBwrapRootfs},
  };
}

// Starts of /bin/true.
void BenchStarts(const Setting& setting) {
  const std::vector<StartRow> rows = Starts(setting);
  const Clock clock = ClockHere(setting.clock_counts);
  std::printf("%d rounds, interleaved; to the bwrap with the same root:\n\n", setting.rounds);
  const std::vector<Started> started = Start(rows, setting.rounds, setting.user);
  if (clock == Clock::kTime)
    PrintStartTable(rows, started);
  else
    PrintEmulatedTable(rows, started, clock);
  const Started& launch = started[kLaunchRootfs];
  PrintBreakdown(rows[kLaunchRootfs].contender, launch, clock, setting.user);
  PrintGoals(launch, clock,
             {{"the floor", started[kFloor], 1.7},
              {"bwrap --unshare-all", started[kBwrapRootfs], 1.1},
              {"runc run", started[kRunc], 0.2},
              {"crun run", started[kCrun], 0.2}});
  if (setting.starts_only) return;
  PrintCrowds(setting, launch.timing);
  PrintSizes(setting);
}

// What takes longer by far, in fewer rounds and not among the starts, which would find their caches
// emptied by it.
void BenchWhole(const Setting& setting) {
  constexpr int kShare = 5;
  const int rounds = setting.rounds / kShare;
  std::vector<Contender> contenders = {
      {"taskcell-launch, host root, /bin/true",
       Launch(setting, {"--host-root"}, {"/bin/true"}),
       false,
       {}},
      {"taskcell run, native, one model call", Task(setting, "native"), false, {}},
      {"podman info", {"/usr/bin/env", "HOME=" + setting.home, "podman", "info"}, false, {}},
      {"taskcell-probe", {setting.bin + "/taskcell-probe", "--quiet"}, false, {}},
  };
  std::vector<std::size_t> baseline = {0, 0, 2, 2};
  if (!setting.socket.empty()) {
    const std::size_t docker = contenders.size();
    contenders.push_back({"docker: create, start, wait, remove", {}, true, [&setting] {
                            return RunOverEngine(setting.socket, setting.image);
                          }});
    contenders.push_back(
        {"taskcell run, docker, one model call", Task(setting, "docker"), false, {}});
    baseline.insert(baseline.end(), {docker, docker});
  }
  std::printf(
      "\n%d rounds, interleaved. Ratio: a task to its engine's /bin/true, the probe to podman "
      "info\n\n",
      rounds);
  std::vector<Timing> timings = Compare(contenders, rounds, setting.user);
  PrintTimes(contenders, timings, baseline, setting.user);
  PrintProbeGoals(setting, timings[2], timings[3]);
}

}  // namespace
}  // namespace taskcell::bench

int main(int argc, char** argv) {
  taskcell::bench::Setting setting;
  setting.clock_counts = argc > 1 && std::string_view(argv[1]) == "--counted";
  setting.starts_only =
      setting.clock_counts || (argc > 1 && std::string_view(argv[1]) == "--starts");
  if (setting.starts_only) {
    ++argv;
    --argc;
  }
  if (argc != 5 && argc != 7) {
    std::fprintf(stderr,
                 "usage: taskcell-bench [--starts | --counted] BIN_DIR USER WORK ROUNDS [SOCKET "
                 "IMAGE]\n");
    return 2;
  }
  setting.bin = argv[1];
  setting.work = argv[3];
  setting.rootfs = setting.work + "/rootfs";
  setting.rounds = std::atoi(argv[4]);
  if (argc == 7) {
    setting.socket = argv[5];
    setting.image = argv[6];
  }
  const struct passwd* user = ::getpwnam(argv[2]);  // NOLINT(concurrency-mt-unsafe): one thread
  if (user == nullptr || ::geteuid() != 0) {
    std::fprintf(stderr, "taskcell-bench: run as root, with a user that exists\n");
    return 2;
  }
  setting.home = user->pw_dir;
  setting.user = {user->pw_uid, user->pw_gid};
  const int fewest =
      setting.starts_only ? taskcell::bench::kFewestIndicative : taskcell::bench::kFewestRounds;
  if (setting.rounds < fewest) {
    std::fprintf(stderr, "taskcell-bench: at least %d rounds\n", fewest);
    return 2;
  }
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);  // each part as soon as it is measured
  taskcell::bench::BenchStarts(setting);
  if (!setting.starts_only) taskcell::bench::BenchWhole(setting);
  return 0;
}

#include "launcher/base/text.h"
#include "launcher/cgroup/limits.h"
#include "launcher/native/options.h"
#include "probe/rules/report.h"

namespace taskcell::probe {
namespace {

constexpr int64_t kPlausibleTime = 1'735'689'600;  // 2025-01-01: before it certificates do not hold
constexpr uint64_t kFewEntropyBits = 128;
constexpr uint64_t kLittleRoomBytes = uint64_t{1} << 30U;

void AddClock(const LiveFacts& live, Report& report) {
  Finding finding{"host.clock",
                  Verdict::kReady,
                  "the clock is plausible",
                  Who::kNone,
                  "",
                  {{"clock", Text(live.unix_time_s)}}};
  if (live.unix_time_s < kPlausibleTime) {
    finding.verdict = Verdict::kNote;
    finding.reason = "the clock is in the past, so certificates of providers will not be valid";
    finding.who = Who::kAdmin;
    finding.fix = "as administrator: timedatectl set-ntp true (or date -s)";
  }
  report.findings.push_back(std::move(finding));
}

void AddRoom(const LiveFacts& live, Report& report) {
  for (const Space& space : live.spaces) {
    std::string mib =
        Text(space.free_bytes >> 20U, " MiB of ", space.total_bytes >> 20U, " MiB are free");
    Finding finding{
        "host.disk", Verdict::kReady,    Text(Printable(space.path), ": ", mib), Who::kNone,
        "",          {{space.path, mib}}};
    if (space.free_bytes < kLittleRoomBytes) {
      finding.verdict = Verdict::kNote;
      finding.reason += ": snapshots, receipts and images may not fit";
      finding.who = Who::kUser;
      finding.fix =
          Text("make room: du -xh --max-depth=2 ", ShellWord(space.path), " | sort -h | tail");
    }
    report.findings.push_back(std::move(finding));
  }
}

// RLIMIT_NPROC counts a user's threads on the whole host: a fork fails in a cell whose own limit is
// far away.
void AddTasks(const HostFacts& facts, Report& report) {
  const LiveFacts& live = *facts.live;
  if (facts.cgroups.around.uid == 0 || live.max_tasks == 0) return;
  bool unlimited = live.max_tasks == ~uint64_t{0};
  std::string most = unlimited ? std::string("unlimited") : Text(live.max_tasks);
  Finding finding{"host.tasks",
                  Verdict::kReady,
                  Text("this user has ", live.own_tasks, " threads; the most is ", most),
                  Who::kNone,
                  "",
                  {{"RLIMIT_NPROC", most}}};
  if (!unlimited && live.own_tasks + native::kDefaultLimits.pids > live.max_tasks) {
    finding.verdict = Verdict::kNote;
    finding.reason +=
        ": a cell's processes can fail to start (EAGAIN) though its own limit is not reached";
    finding.who = Who::kAdmin;
    finding.fix =
        Text("give cells their own uids (row subids), or as administrator: raise nproc for ",
             ShellWord(facts.cgroups.around.UserName()), " in /etc/security/limits.d");
  }
  report.findings.push_back(std::move(finding));
}

void AddEntropy(const HostFacts& facts, Report& report) {
  constexpr std::string_view kPath = "/proc/sys/kernel/random/entropy_avail";
  std::optional<uint64_t> bits = facts.files.Number(kPath);
  if (!bits) return;
  Finding finding{"host.entropy",
                  Verdict::kReady,
                  "the kernel's random numbers are ready",
                  Who::kNone,
                  "",
                  {{std::string(kPath), Text(*bits)}}};
  if (*bits < kFewEntropyBits) {
    finding.verdict = Verdict::kNote;
    finding.reason = "the kernel has little entropy: a start may wait for random numbers";
    finding.who = Who::kAdmin;
    finding.fix =
        "as administrator: apt install rng-tools5 (in a virtual machine: give it virtio-rng)";
  }
  report.findings.push_back(std::move(finding));
}

void AddSwap(const HostFacts& facts, Report& report) {
  const sys::FileSeen& swaps = facts.files.File("/proc/swaps");
  if (!swaps.present()) return;
  bool has_swap = cgroup::ListsSwap(swaps.text);
  report.findings.push_back({"host.swap",
                             Verdict::kReady,
                             has_swap ? "the host has swap; cells are limited to none"
                                      : "the host has no swap, so memory is all a cell can use",
                             Who::kNone,
                             "",
                             {{"/proc/swaps", has_swap ? "in use" : "none"}}});
}

}  // namespace

void JudgeResources(const HostFacts& facts, Report& report) {
  if (facts.live) {
    AddTasks(facts, report);
    AddClock(*facts.live, report);
    AddRoom(*facts.live, report);
  }
  AddEntropy(facts, report);
  AddSwap(facts, report);
}

}  // namespace taskcell::probe

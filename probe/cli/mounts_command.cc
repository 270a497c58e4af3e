#include "probe/cli/mounts_command.h"

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "launcher/base/accounts.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"
#include "probe/cli/host_command.h"
#include "probe/cli/output.h"
#include "probe/mounts/audit.h"
#include "probe/mounts/print.h"

namespace taskcell::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kListBytes = 65536;
constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::milliseconds kGrace{1000};  // for an audit to end by itself, once time is up

unsigned DefaultThreads() {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  return std::clamp(static_cast<unsigned>(CPU_COUNT(&usable)), 1U, audit::kMaxThreads);
}

Result<std::optional<uid_t>> OwnerOf(const std::string& text) {
  constexpr std::size_t kMaxPasswdBytes = 4U << 20U;
  if (text.empty()) return std::optional<uid_t>();
  std::optional<uint64_t> number = ParseUnsigned(text);
  if (number && *number < UINT32_MAX) return std::optional<uid_t>(static_cast<uid_t>(*number));
  std::string passwd = TRY(sys::ReadFile(AT_FDCWD, "/etc/passwd", kMaxPasswdBytes));
  std::optional<uint32_t> uid = UserId(passwd, text);
  if (!uid) return Error(Kind::kUsage, Text("--owner: there is no user '", Printable(text), "'"));
  return std::optional<uid_t>(*uid);
}

// Shows on a terminal how far a long walk is, and takes the line away again.
class Progress {
 public:
  explicit Progress(bool shown) : shown_(shown) {}
  ~Progress() { Clear(); }

  void Show(uint64_t entries) {
    constexpr std::chrono::seconds kQuiet{1};
    if (!shown_ || Clock::now() - start_ < kQuiet) return;
    // ignoring: it is for whoever looks
    (void)sys::WriteAll(STDERR_FILENO, Text("\r", entries, " entries "));
    drawn_ = true;
  }
  void Clear() {
    if (drawn_) (void)sys::WriteAll(STDERR_FILENO, "\r\x1b[K");  // ignoring: the same
    drawn_ = false;
  }

 private:
  const bool shown_;
  const Clock::time_point start_ = Clock::now();
  bool drawn_ = false;
};

// How long an audit that shows no progress since `alive` is waited for.
Clock::duration PatienceOf(const audit::WalkOptions& walk, Clock::time_point alive) {
  const Clock::duration most = 2 * walk.entry_timeout;
  if (walk.deadline - alive >= most) return most;
  return std::max<Clock::duration>(walk.deadline - alive, Clock::duration::zero()) + kGrace;
}

// An audit on a thread of its own, since the directory itself may be on a file system that hangs:
// then `hangs` is set, and the thread is left behind.
Result<audit::Report> WatchedAudit(audit::AuditRequest request, bool& hangs) {
  struct Shared {
    std::mutex mutex;
    std::condition_variable ended;
    std::optional<Result<audit::Report>> report;
    Clock::time_point alive = Clock::now();
    uint64_t entries = 0;
  };
  auto shared = std::make_shared<Shared>();
  request.walk.progress = [shared](uint64_t entries) {
    std::scoped_lock lock(shared->mutex);
    shared->alive = Clock::now();
    shared->entries = entries;
  };
  std::thread audit([shared, request] {
    Result<audit::Report> report = audit::Audit(request);
    std::scoped_lock lock(shared->mutex);
    shared->report = std::move(report);
    shared->ended.notify_all();
  });
  Progress progress(::isatty(STDERR_FILENO) == 1);
  std::unique_lock lock(shared->mutex);
  while (!shared->ended.wait_for(lock, kLook, [&] { return shared->report.has_value(); })) {
    progress.Show(shared->entries);
    if (Clock::now() - shared->alive < PatienceOf(request.walk, shared->alive)) continue;
    hangs = true;
    audit.detach();
    return Error(Kind::kSystem, Text("'", Printable(request.directory),
                                     "' does not answer: it, or something on the way to it, is on "
                                     "a file system that hangs; unmount that (umount -l)"));
  }
  lock.unlock();
  audit.join();
  return std::move(*shared->report);
}

// Writes paths to standard output, each ended by NUL.
class NullList {
 public:
  void Begin(const std::string& directory) { directory_ = directory; }
  void Add(std::string_view path) {
    std::scoped_lock lock(mutex_);
    pending_ += directory_;
    if (!path.empty() && !directory_.ends_with('/')) pending_ += '/';
    pending_ += path;
    pending_ += '\0';
    if (pending_.size() >= kListBytes) Write();
  }
  bool Finish() {
    std::scoped_lock lock(mutex_);
    Write();
    return written_;
  }

 private:
  void Write() {
    written_ = Print(pending_) && written_;
    pending_.clear();
  }

  std::mutex mutex_;
  std::string directory_;
  std::string pending_;
  bool written_ = true;
};

Status CheckForms(const MountsOptions& options) {
  if (options.json + options.sarif + options.null_list > 1)
    return Error(Kind::kUsage, "--json, --sarif and -0 exclude each other");
  if (options.threads > audit::kMaxThreads)
    return Error(Kind::kUsage, Text("--threads: at most ", audit::kMaxThreads));
  return Ok();
}

Result<mounts::Subtree> SubtreeOf(const MountsOptions& options) {
  const std::string& wish = options.unsafe_subtree;
  if (!wish.empty() && audit::PolicyNamed(options.policy) != audit::Policy::kAgent)
    return Error(Kind::kUsage, "--unsafe-subtree goes with --policy agent only");
  if (wish.empty() || wish == "prune") return mounts::Subtree::kPrune;
  if (wish == "skip") return mounts::Subtree::kSkip;
  return Error(Kind::kUsage,
               Text("--unsafe-subtree: '", Printable(wish), "' is none of prune, skip"));
}

Result<audit::AuditRequest> RequestOf(const MountsOptions& options) {
  TRY(CheckForms(options));
  audit::AuditRequest request;
  std::optional<audit::Policy> policy = audit::PolicyNamed(options.policy);
  if (!policy) {
    return Error(Kind::kUsage, Text("--policy: '", Printable(options.policy),
                                    "' is none of agent, strict, bind"));
  }
  request.policy = *policy;
  request.subtree = TRY(SubtreeOf(options));
  request.owner = TRY(OwnerOf(options.owner));
  request.walk.threads = options.threads == 0 ? DefaultThreads() : options.threads;
  request.walk.max_entries = options.max_entries;
  request.all_attributes = options.xattrs;
  if (options.cross_mounts) request.walk.crossing = mounts::Crossing::kOtherMounts;
  if (!options.timeout.empty())
    request.walk.deadline = Clock::now() + TRY(ParseDuration(options.timeout).With("--timeout"));
  return request;
}

// `failed` is what became of directories without a report, kExitSafe where there are none. With a
// list of paths kExitUnknown wins over kExitFindings: what is listed then is no answer.
int StatusOf(const std::vector<audit::Report>& reports, int failed, bool null_list) {
  auto any = [&reports](audit::Standing standing) {
    return std::any_of(reports.begin(), reports.end(),
                       [standing](const auto& each) { return each.standing == standing; });
  };
  if (failed == kExitUsage) return failed;
  if (null_list && std::any_of(reports.begin(), reports.end(), audit::IsIncomplete))
    return kExitUnknown;
  if (any(audit::Standing::kUnsafe)) return kExitFindings;
  return failed != kExitSafe || any(audit::Standing::kUnknown) ? kExitUnknown : kExitSafe;
}

std::string TextOf(const MountsOptions& options, const std::vector<audit::Report>& reports) {
  if (options.json) return JsonOf(reports);
  if (options.sarif) return SarifOf(reports);
  std::string text;
  for (const audit::Report& report : reports) {
    if (!report.reason.empty()) continue;  // standard error says why
    if (!text.empty()) text += '\n';
    text += TableOf(report, StyleOfOutput());
  }
  return text;
}

// Audits and prints; `abandoned` where a thread was left behind.
int AuditAll(const MountsOptions& options, audit::AuditRequest request, bool& abandoned) {
  // The threads of a walk allocate little: with a heap each, most of that would lie idle.
  // ignoring: it only takes more memory
  (void)::mallopt(M_ARENA_MAX, 1);  // NOLINT(concurrency-mt-unsafe): there is no thread yet
  // The libraries of the other commands have begun too, and are not needed here.
  sys::ReleaseFilePages();
  NullList list;
  if (options.null_list) request.safe = [&list](std::string_view path) { list.Add(path); };
  std::vector<audit::Report> reports;
  int failed = kExitSafe;
  for (const std::string& directory : options.directories) {
    request.directory = directory;
    list.Begin(directory);
    Result<audit::Report> report = WatchedAudit(request, abandoned);
    if (!report.ok()) {
      const int status = Complain(report.error());
      if (failed != kExitUsage) failed = status;
      reports.push_back(audit::FailedReport(directory, request.policy, report.error()));
      continue;
    }
    abandoned = abandoned || report->abandoned;
    reports.push_back(std::move(report).value());
  }
  bool printed = options.null_list ? list.Finish() : Print(TextOf(options, reports));
  return printed ? StatusOf(reports, failed, options.null_list) : kExitUnknown;
}

// Whoever reads what was printed must not wait for a process that may hang.
Status LeaveStreams() {
  UniqueFd null = TRY(sys::Open("/dev/null", O_RDWR));
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) TRY(sys::PlaceDescriptor(null.get(), fd));
  return Ok();
}

[[noreturn]] void AuditInChild(const MountsOptions& options, const audit::AuditRequest& request,
                               int channel) {
  bool abandoned = false;
  Status bound = sys::SetParentDeathSignal(SIGKILL);
  const int status = bound.ok() ? AuditAll(options, request, abandoned) : Complain(bound.error());
  if (abandoned && LeaveStreams().ok()) {
    const char byte = static_cast<char>(status);
    (void)sys::WriteAll(channel, {&byte, 1});  // ignoring: without a reader the parent is gone
  }
  sys::ExitNow(status);
}

// A thread in a system call that does not return keeps its process from ending, whatever is done to
// it: that is a child's, which says so before.
Result<int> AuditApart(const MountsOptions& options, const audit::AuditRequest& request) {
  sys::SocketPair pair = TRY(sys::MakePacketPair());
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) {
    pair.first.Reset();
    AuditInChild(options, request, pair.second.get());
  }
  pair.second.Reset();
  std::array<char, 1> byte = {};
  if (TRY(sys::Read(pair.first.get(), byte)) == 1) sys::ExitNow(byte[0]);  // leaves the child
  const sys::ExitInfo ended = TRY(cloned.child.Wait());
  if (ended.signal == 0) return ended.status;
  return Error(Kind::kSystem, Text("the audit was ended by signal ", ended.signal));
}

}  // namespace

Result<std::chrono::milliseconds> ParseDuration(const std::string& text) {
  constexpr uint64_t kDayMs = 86'400'000;
  constexpr std::pair<std::string_view, uint64_t> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  std::size_t digits = text.find_first_not_of("0123456789");
  for (const auto& [unit, factor] : kUnits) {
    if (digits == text.npos || text.substr(digits) != unit) continue;
    std::optional<uint64_t> count = ParseUnsigned(text.substr(0, digits));
    if (count && *count > 0 && *count <= kDayMs / factor)
      return std::chrono::milliseconds(*count * factor);
  }
  return Error(Kind::kUsage, Text("'", Printable(text),
                                  "' is no duration of up to a day, such as 250ms, 10s, 2m, 1h"));
}

int MountsCommand(const MountsOptions& options) {
  Result<audit::AuditRequest> request = RequestOf(options);
  if (!request.ok()) return Complain(request.error());
  Result<int> status = AuditApart(options, request.value());
  return status.ok() ? status.value() : Complain(status.error());
}

}  // namespace taskcell::probe

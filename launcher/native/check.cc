#include "launcher/native/check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "launcher/base/printable_message.h"
#include "launcher/base/text.h"
#include "launcher/cgroup/layout.h"
#include "launcher/cgroup/place.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/cgroup/scope.h"
#include "launcher/native/launch.h"
#include "launcher/native/limit_check.h"
#include "launcher/native/message.h"
#include "launcher/native/own_program.h"
#include "launcher/native/request.h"
#include "launcher/sys/file.h"
#include "launcher/sys/landlock.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/process.h"

namespace taskcell::native {
namespace {

constexpr std::string_view kBreaker = "taskcell-breaker";
constexpr char kBreakerTarget[] = "/run/taskcell/breaker";
// It does nothing where the host has another name.
constexpr char kBreakerHostname[] = "taskcell-probe";
// Small, since each is going to be reached.
const cell::Limits kLimits = {uint64_t{64} << 20U, 64, 200, 256};
constexpr uint64_t kTimeoutMs = 60'000;  // well below a second where nothing else runs

// The lines of the check.
class Lines {
 public:
  explicit Lines(int fd) : fd_(fd) {}

  void Pass(std::string_view what, std::string_view found) { Print("pass", what, found); }
  void Fail(std::string_view what, std::string_view why) {
    passed_ = false;
    Print("FAIL", what, why);
  }
  void Skip(std::string_view what, std::string_view why) {
    passed_ = false;
    Print("-", what, why);
  }
  // What a cell does without.
  void Note(std::string_view what, std::string_view text) { Print("-", what, text); }
  // `done`, or why not.
  void Add(std::string_view what, const Result<std::string>& done) {
    if (done.ok()) return Pass(what, done.value());
    Fail(what, done.error().text);
  }

  bool passed() const { return passed_; }
  const Status& written() const { return written_; }

 private:
  void Print(std::string_view verdict, std::string_view what, std::string_view text) {
    constexpr std::size_t kVerdictWidth = 6;
    constexpr std::size_t kWhatWidth = 16;
    std::string line(verdict);
    line.resize(std::max(kVerdictWidth, line.size() + 1), ' ');
    line += what;
    line.resize(std::max(kVerdictWidth + kWhatWidth, line.size() + 1), ' ');
    Status written = sys::WriteAll(fd_, line + PrintableMessage(text) + "\n");
    if (!written.ok()) written_ = std::move(written);
  }

  int fd_;
  bool passed_ = true;
  Status written_ = Ok();
};

Result<std::string> CheckIds(Options options) {
  options.command = {kBreakerTarget};  // as in what follows; here nothing is run
  std::string run_id = TRY(MakeRunId());
  LaunchRequest request = TRY(MakeRequest(options, run_id, ""));
  const cell::CellPlan& plan = request.plan;
  OutsideIds outside = TRY(ChooseOutsideIds(options.user_namespace, plan));
  return Text("uid ", plan.uid, " and gid ", plan.gid, " inside are ", outside.uid, " and ",
              outside.gid, " outside (", Name(outside.way), ")");
}

Result<std::string> CheckPlace(const cgroup::Layout& layout, cgroup::Controller controller,
                               const std::string& parent) {
  const cgroup::Hierarchy* hierarchy = layout.Find(controller);
  if (hierarchy == nullptr)
    return Error(Kind::kUnsupported,
                 "no cgroup hierarchy holds it: the kernel was built or booted without it");
  cgroup::Place place = TRY(cgroup::FindPlace(*hierarchy, {controller}, parent));
  return Text("limits go below ", Printable(place.path));
}

// As for a cell: what a login session hands on to nobody, the user's manager has to give.
void LeaveSession(Result<cgroup::Layout>& layout, Lines& lines) {
  Status entered = cgroup::EnterOwnScope();
  if (entered.ok()) {
    layout = cgroup::ReadLayout();
    return;
  }
  Result<bool> on_v1 = cgroup::ReadAllOnV1();
  if (on_v1.ok() && on_v1.value()) return;  // no cell would ask for one
  lines.Note("scope", Text("none of the user's manager was to be had: ", entered.error().text));
}

void CheckPlaces(const std::string& parent, Lines& lines) {
  Result<cgroup::Layout> layout = cgroup::ReadLayout();
  const bool lacks =
      layout.ok() &&
      std::any_of(std::begin(cgroup::kControllers), std::end(cgroup::kControllers),
                  [&](auto each) { return !CheckPlace(layout.value(), each, parent).ok(); });
  if (lacks && parent.empty()) LeaveSession(layout, lines);
  if (!layout.ok()) return lines.Fail("cgroups", layout.error().text);
  for (cgroup::Controller controller : cgroup::kControllers)
    lines.Add(Text(cgroup::Name(controller), " cgroup"),
              CheckPlace(layout.value(), controller, parent));
}

// The breaker's output is of no interest: what the kernel counted is the proof.
Result<Finished> Break(Options options, const std::string& breaker) {
  options.limits = kLimits;
  options.rootfs.clear();
  options.binds = {{breaker, kBreakerTarget, false}};
  options.hostname = kBreakerHostname;
  options.time_limit.timeout_ms = kTimeoutMs;
  options.command = {kBreakerTarget, Text("pids:", kLimits.pids),
                     Text("memory:", kLimits.memory_bytes), Text("cpu:", kLimits.cpu_millis)};
  return RunInCell(options);
}

void PrintLimits(const Outcome& outcome, Lines& lines) {
  for (const LimitCheck& check : CheckLimits(kLimits, outcome)) {
    switch (check.verdict) {
      case LimitCheck::Verdict::kHeld:
        lines.Pass(check.name, check.text);
        break;
      case LimitCheck::Verdict::kNot:
        lines.Fail(check.name, check.text);
        break;
      case LimitCheck::Verdict::kUnknown:
        lines.Skip(check.name, check.text);
        break;
    }
  }
}

void CheckCell(const Options& options, Lines& lines) {
  Result<OwnProgram> breaker = OpenOwnProgram(kBreaker);
  if (!breaker.ok()) return lines.Skip("cell", breaker.error().text);
  Result<Finished> finished = Break(options, breaker->path);
  if (!finished.ok()) {
    const Error& error = finished.error();
    // Everything else of it was tried all the same, and the limits have lines of their own.
    if (!lines.passed() && error.code == cgroup::kUnenforced)
      return lines.Skip("cell", "not made, for want of limits; namespaces and root can be had");
    return lines.Fail("cell", error.text);
  }
  const Outcome& outcome = finished->outcome;
  if (outcome.refusal) return lines.Fail("cell", outcome.refusal->text);
  if (ExitStatus(outcome) != 0)
    return lines.Fail("cell", Text("made and verified, but what breaks limits in it ended with ",
                                   ExitStatus(outcome)));
  lines.Pass("cell", "made, verified from inside and outside, and removed");
  PrintLimits(outcome, lines);
}

void CheckLandlock(Lines& lines) {
  constexpr std::string_view kName = "landlock";
  const int abi = sys::LandlockAbi();
  if (abi > 0) return lines.Pass(kName, Text("ABI ", abi));
  lines.Note(kName,
             "not there: the kernel lacks it (Linux 5.13, and landlock among its lsm= list), or a "
             "filter forbids it; cells do without this second wall");
}

// Standard output is the cell's too; what the breaker prints there is dropped.
Result<UniqueFd> TakeOutput() {
  UniqueFd output = TRY(sys::Duplicate(STDOUT_FILENO));
  UniqueFd null = TRY(sys::Open("/dev/null", O_RDWR));
  TRY(sys::PlaceDescriptor(null.get(), STDOUT_FILENO));
  return output;
}

}  // namespace

int RunCheck(const Options& options) {
  Result<UniqueFd> output = TakeOutput();
  if (!output.ok()) {
    PrintMessage(output.error());
    return kExitFailed;
  }
  Lines lines(output->get());
  Status proc = sys::CheckProc();
  if (!proc.ok()) {  // nothing that would be told below could be believed
    lines.Fail("proc", proc.error().text);
    return 1;
  }
  lines.Add("ids", CheckIds(options));
  CheckPlaces(options.cgroup_parent, lines);
  CheckLandlock(lines);
  CheckCell(options, lines);
  if (lines.written().ok()) return lines.passed() ? 0 : 1;
  PrintMessage(lines.written().error());
  return kExitFailed;
}

}  // namespace taskcell::native

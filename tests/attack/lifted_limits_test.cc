// A cell that was made without a filter and with its capabilities, so that a program in it can
// mount its cgroups and write what limits there are: the limits that hold it are further up.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>

#include "launcher/base/text.h"
#include "launcher/cgroup/layout.h"
#include "launcher/gate/gate_host.h"
#include "launcher/native/request.h"
#include "launcher/sys/signals.h"
#include "probe/cells/native_engine.h"
#include "probe/live/asked.h"
#include "probe/live/leftovers.h"
#include "probe/live/live.h"
#include "tests/support/as_test_user.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

constexpr uint64_t kMemory = uint64_t{64} << 20U;
constexpr uint64_t kPids = 32;

// Mounts each hierarchy it can, writes "no limit" into the limit files at the top of it, reads them
// back, and takes more than it may have. On the unified one it also hands every controller on, to a
// cgroup of its own that it goes to. With an argument it does not mount.
constexpr char kLift[] = R"(
import ctypes, functools, os, signal, sys, time
print = functools.partial(print, flush=True)
libc = ctypes.CDLL(None, use_errno=True)
mounted, lifted, moved = [], [], []
def lift(kind, data, files):
  place = '/tmp/' + (data or kind).decode()
  os.mkdir(place)
  if libc.mount(b'none', place.encode(), kind, 0, data) != 0: return
  mounted.append((data or kind).decode())
  for name, none in files:
    try:
      with open(place + '/' + name, 'w') as file: file.write(none)
      with open(place + '/' + name) as file: now = file.read().split()[0]
      if now == 'max' or int(now) < 0 or int(now) > 1 << 50: lifted.append(name)
    except (OSError, IndexError): pass
def leave(place):
  try:
    os.mkdir(place + '/own')
    with open(place + '/own/cgroup.procs', 'w') as file: file.write('0')
    moved.append('own')
  except OSError: pass
  for controller in 'memory', 'pids', 'cpu':
    try:
      with open(place + '/cgroup.subtree_control', 'w') as file: file.write('+' + controller)
      moved.append(controller)
    except OSError: pass
if len(sys.argv) == 1:
  lift(b'cgroup', b'memory', [('memory.limit_in_bytes', '-1')])
  lift(b'cgroup', b'pids', [('pids.max', 'max')])
  lift(b'cgroup2', None, [('memory.max', 'max'), ('memory.swap.max', 'max'), ('pids.max', 'max')])
  leave('/tmp/cgroup2')
print('mounted', *mounted)
print('lifted', *sorted(lifted))
print('moved', *moved)
children = []
try:
  while len(children) < 100:
    pid = os.fork()
    if pid == 0:
      time.sleep(60)
      os._exit(0)
    children.append(pid)
except OSError: pass
print('children', len(children))
for pid in children:
  os.kill(pid, signal.SIGKILL)
  os.waitpid(pid, 0)
pid = os.fork()
if pid == 0:
  much = bytearray(256 << 20)
  os._exit(0)
print('memory', os.waitpid(pid, 0)[1])
)";

class Output : public gate::OutputSink {
 public:
  bool OnStdout(std::string_view bytes) override {
    text += bytes;
    return true;
  }
  bool OnStderr(std::string_view bytes) override {
    text += bytes;
    return true;
  }
  std::string text;
};

Result<std::string> RunInCell(const std::string& launcher) {
  live::Asked asked;
  asked.limits.memory_bytes = kMemory;
  asked.limits.pids = kPids;
  asked.limits.cpu_millis = 2000;
  cell::CellPlan plan = live::PlanProbe(asked, live::kInsideId, live::kInsideId);
  plan.home_label = live::kProbeHomeLabel;
  plan.run_id = TRY(native::MakeRunId());
  plan.deadline_unix_ms = sys::UnixMs() + live::kAbandonedAfterMs;
  plan.hostname = "taskcell";
  probe::NativeEngine engine;
  probe::CellPlaces places;
  places.launch_program = AsTestUser::Copy(launcher);
  std::unique_ptr<probe::RunningCell> cell = TRY(engine.Make(std::move(plan), places));
  gate::GateHost gate = TRY(gate::GateHost::Open(cell->TakeGate()));
  constexpr auto kWait = std::chrono::seconds(40);
  TRY(gate.Attest(false, gate::GateHost::Clock::now() + kWait));
  cell::Job job;
  job.argv = {"/usr/bin/python3", "-c", kLift};
  job.environment = {"PATH=/usr/bin:/bin"};
  job.working_directory = "/tmp";
  job.stdio = cell::JobStdio::kRelay;
  job.timeout_ms = 60'000;
  TRY(gate.HandOver(job, gate::GateHost::Clock::now() + kWait));
  Output output;
  TRY(gate.Pump(output, gate::GateHost::Clock::now() + 2 * kWait));
  (void)gate.Done();  // ignoring: the cell is removed either way
  TRY(cell->Remove());
  return output.text;
}

// As in a unit with NoNewPrivileges=yes: the cell has this user's own kernel id, which owns the
// files of its cgroup.
std::string InOwnCell(const std::string& launcher) {
  std::string answer;
  int pipe[2] = {-1, -1};
  EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  int status = InChild([&] {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 90;
    Result<std::string> ran = RunInCell(launcher);
    std::string text = ran.ok() ? ran.value() : "refused: " + ran.error().text;
    return ::write(pipe[1], text.data(), text.size()) < 0 ? 91 : 0;
  });
  EXPECT_EQ(status, 0);
  ::close(pipe[1]);
  char bytes[4096];
  ssize_t got = ::read(pipe[0], bytes, sizeof bytes);
  if (got > 0) answer.assign(bytes, static_cast<std::size_t>(got));
  ::close(pipe[0]);
  return answer;
}

TEST(LiftedLimitsTest, LimitsHoldACellThatMountsItsCgroupsAndLiftsWhatItSees) {
  TASKCELL_REQUIRE(!AsTestUser::directory().empty(),
                   "needs the user taskcell-test (tests/support/fixture.sh up)");
  RunOptions options;
  Outcome outside = test::Run({"/usr/bin/python3", "-c", kLift, "outside"}, options);
  EXPECT_EQ(outside.out, "mounted\nlifted\nmoved\nchildren 100\nmemory 0\n")
      << outside.err;  // control
  const std::string inside = InOwnCell("taskcell-weak-launch-0");
  std::vector<std::string_view> lines = Split(Trim(inside), '\n');
  ASSERT_EQ(lines.size(), 5U) << inside;
  const cgroup::Layout layout = cgroup::ReadLayout().value();
  if (layout.Find(cgroup::Controller::kMemory)->unified) {
    // The limits' own files stand above what it sees, and no controller can be had from there.
    EXPECT_EQ(lines[0], "mounted cgroup2");
    EXPECT_EQ(lines[1], "lifted");
    EXPECT_EQ(lines[2], "moved own");
  } else {
    EXPECT_THAT(std::string(lines[0]), testing::StartsWith("mounted memory pids"));
    EXPECT_EQ(lines[1], "lifted memory.limit_in_bytes pids.max");
  }
  uint64_t children = ParseUnsigned(Words(lines[3])[1]).value_or(kPids);
  EXPECT_GT(children, 0U);
  EXPECT_LT(children, kPids);
  EXPECT_EQ(lines[4], "memory 9");
}

}  // namespace
}  // namespace taskcell::test

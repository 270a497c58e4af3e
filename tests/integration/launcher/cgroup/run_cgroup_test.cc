// Limits on the real cgroup hierarchies of this host, as the unprivileged user of the fixture and
// the directories handed to it. Each body runs in a forked child.
#include "launcher/cgroup/run_cgroup.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/name.h"
#include "launcher/cgroup/observe.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::cgroup {
namespace {

constexpr uint64_t kMiB = 1U << 20U;
const cell::Limits kLimits = {64 * kMiB, 16, 500, 1024};
constexpr uid_t kStranger = 65534;  // no directory is handed to it

// In a forked child: tells what is not as it must be, and ends the child with a failure.
#define MUST(condition)                                                            \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                                    \
    }                                                                              \
  } while (false)
#define MUST_OK(result)                                                                       \
  do {                                                                                        \
    if (!(result).ok()) {                                                                     \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, (result).error().text.c_str()); \
      return 1;                                                                               \
    }                                                                                         \
  } while (false)

std::string NewRunId() {
  std::array<unsigned char, 16> bytes;
  EXPECT_EQ(::getrandom(bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  std::string id;
  for (unsigned char byte : bytes) {
    id += "0123456789abcdef"[byte >> 4U];
    id += "0123456789abcdef"[byte & 15U];
  }
  return id;
}

int As(uid_t uid, gid_t gid, const std::function<int()>& body) {
  return test::InChild([&] {
    if (::geteuid() == uid) return body();
    test::EnterDelegatedCgroup(uid);
    MUST(::setgroups(0, nullptr) == 0 && ::setresgid(gid, gid, gid) == 0 &&
         ::setresuid(uid, uid, uid) == 0);
    return body();
  });
}

int WaitFor(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Forks a process that enters the cell by itself and then runs `body`; its status, or 90 when it
// could not enter.
pid_t ForkInto(const RunCgroup& run, const std::function<int()>& body) {
  Result<std::vector<UniqueFd>> entries = run.OpenEntries(true);
  if (!entries.ok()) return -1;
  pid_t child = ::fork();
  if (child != 0) return child;
  for (const UniqueFd& entry : entries.value()) {
    if (!RunCgroup::Enter(entry.get()).ok()) ::_exit(90);
  }
  ::_exit(body());
}

// Forks until the kernel refuses, at most `most` times; ends all it made. -1: refused otherwise
// than by EAGAIN.
int ForkUntilRefused(int most) {
  std::vector<pid_t> made;
  int refusal = 0;
  while (static_cast<int>(made.size()) < most) {
    pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    if (child < 0) {
      refusal = errno;
      break;
    }
    made.push_back(child);
  }
  for (pid_t child : made) ::kill(child, SIGKILL);
  for (pid_t child : made) (void)WaitFor(child);
  if (refusal != 0 && refusal != EAGAIN) return -1;
  return static_cast<int>(made.size());
}

int TouchMemory(uint64_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 91;
  (void)::madvise(memory, bytes, MADV_NOHUGEPAGE);
  for (uint64_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
  return 0;
}

void Spin(int milliseconds) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// The run-<id> directories below every place that is the test user's, by path.
std::vector<std::string> LeftBehind(const std::string& run_id) {
  std::vector<std::string> found;
  Layout layout = ReadLayout().value();
  for (const Hierarchy& hierarchy : layout.hierarchies) {
    if (hierarchy.mount_point.empty()) continue;
    Result<UniqueFd> mount = OpenMount(hierarchy);
    if (!mount.ok()) continue;
    std::string own = BelowMount(hierarchy, hierarchy.own_path).value_or("");
    std::string above = own.substr(0, own.find_last_of('/') == own.npos ? 0 : own.rfind('/'));
    for (const std::string& place : {DelegatedBelow(::geteuid()), own, above, std::string()}) {
      std::string name = Text(place, place.empty() ? "" : "/", RunName(run_id));
      if (sys::StatAt(mount->get(), name).ok()) found.push_back(hierarchy.mount_point + "/" + name);
    }
  }
  return found;
}

class RunCgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    // Without root: whoever runs it, in what is delegated to that user.
    user_ = test::User{"", ::geteuid(), ::getegid(), ""};
    if (user_.uid == 0) {
      TASKCELL_REQUIRE(test::TestUser().has_value(), "no test user: tests/support/fixture.sh up");
      user_ = *test::TestUser();
    }
    int status = AsUser([] {
      Result<RunCgroup> run = RunCgroup::Make(NewRunId(), kLimits);
      if (!run.ok()) std::fprintf(stderr, "%s\n", run.error().text.c_str());
      return run.ok() ? 0 : 3;
    });
    TASKCELL_REQUIRE(status == 0,
                     "no cgroup is handed to the test user: tests/support/delegate.sh");
  }
  int AsUser(const std::function<int()>& body) { return As(user_.uid, user_.gid, body); }

  test::User user_;
};

TEST_F(RunCgroupTest, ForksAreRefusedAtTheLimitAndCounted) {
  EXPECT_EQ(ForkUntilRefused(40), 40);  // control: outside nothing refuses
  EXPECT_EQ(AsUser([] {
              Result<RunCgroup> run = RunCgroup::Make(NewRunId(), kLimits);
              MUST_OK(run);
              MUST(run->ReadEvents()->pids_refusals == 0);
              int made = WaitFor(ForkInto(run.value(), [] { return ForkUntilRefused(40); }));
              MUST(made == 15);  // 16 with the one that forked
              MUST(run->ReadEvents()->pids_refusals == 1);
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, OneGreedyProcessIsKilledAndCountedAndItsParentLives) {
  EXPECT_EQ(test::InChild([] { return TouchMemory(128 * kMiB); }), 0);  // control
  EXPECT_EQ(AsUser([] {
              Result<RunCgroup> run = RunCgroup::Make(NewRunId(), kLimits);
              MUST_OK(run);
              int status = WaitFor(ForkInto(run.value(), [] {
                return test::InChild([] { return TouchMemory(128 * kMiB); }) == 128 + SIGKILL ? 7
                                                                                              : 8;
              }));
              MUST(status == 7);
              Result<Events> events = run->ReadEvents();
              MUST_OK(events);
              MUST(events->oom_kills == 1);
              MUST(events->peak_memory_bytes.value_or(64 * kMiB) <= 64 * kMiB);
              MUST(events->peak_memory_bytes.value_or(64 * kMiB) > 60 * kMiB);
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, ProcessWithinItsMemoryIsLeftAlone) {
  EXPECT_EQ(AsUser([] {
              Result<RunCgroup> run = RunCgroup::Make(NewRunId(), kLimits);
              MUST_OK(run);
              MUST(WaitFor(ForkInto(run.value(), [] { return TouchMemory(32 * kMiB); })) == 0);
              MUST(run->ReadEvents()->oom_kills == 0);
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, ProcessorTimeIsThrottled) {
  EXPECT_EQ(AsUser([] {
              for (uint64_t millis : {uint64_t{100}, uint64_t{64000}}) {
                Result<RunCgroup> run = RunCgroup::Make(NewRunId(), {64 * kMiB, 16, millis, 1024});
                MUST_OK(run);
                pid_t child = ForkInto(run.value(), [] {
                  Spin(400);
                  Result<Layout> layout = ReadLayout();
                  const Hierarchy* cpu = layout->Find(Controller::kCpu);
                  UniqueFd mount = OpenMount(*cpu).value();
                  std::string cell = BelowMount(*cpu, cpu->own_path).value();
                  std::string limited = cell.substr(0, cell.rfind('/'));
                  UniqueFd level = OpenCgroup(mount.get(), limited).value();
                  std::string stat = ReadControl(level.get(), "cpu.stat").value();
                  return ValueOf(stat, "nr_throttled").value_or(0) > 0 ? 7 : 8;
                });
                MUST(WaitFor(child) == (millis == 100 ? 7 : 8));
              }
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, ObserverSeesExactlyTheLimitsAndTheUser) {
  EXPECT_EQ(AsUser([&] {
              Result<RunCgroup> run = RunCgroup::Make(NewRunId(), kLimits);
              MUST_OK(run);
              pid_t child = ForkInto(run.value(), [] {
                (void)TouchMemory(kMiB);
                return ::pause();
              });
              // Until it has entered every hierarchy the observer sees no limit; wait for the last.
              Result<cell::OutsideAttestation> seen = Observe(child);
              for (int tries = 0; tries < 2000 && seen->limits.pids != 16U; ++tries) {
                ::usleep(1000);
                seen = Observe(child);
              }
              ::usleep(20000);
              seen = Observe(child);
              MUST_OK(seen);
              MUST(seen->host_pid == child);
              MUST(seen->host_uids[0] == user_.uid && seen->host_uids[3] == user_.uid);
              MUST(seen->host_gids[1] == user_.gid);
              MUST(seen->limits.memory_bytes == 64 * kMiB);
              MUST(seen->limits.memory_and_swap_bytes == 64 * kMiB);
              MUST(seen->limits.pids == 16U);
              MUST(seen->limits.cpu_quota_us == 50000U);
              MUST(seen->limits.cpu_period_us == 100000U);
              Result<Events> events = ReadEventsOf(seen.value());
              MUST_OK(events);
              MUST(events->oom_kills == 0);
              MUST(events->peak_memory_bytes.value_or(kMiB) >= kMiB);
              // The deny twin: this process is in no such cgroup.
              MUST(Observe(::getpid())->limits.pids != 16U);
              ::kill(child, SIGKILL);
              MUST(WaitFor(child) == 128 + SIGKILL);
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, OtherProcessIsPlacedAndKilled) {
  EXPECT_EQ(AsUser([] {
              Result<RunCgroup> run = RunCgroup::Make(NewRunId(), kLimits);
              MUST_OK(run);
              pid_t child = ::fork();
              if (child == 0) ::_exit(::pause());
              pid_t other = ::fork();
              if (other == 0) ::_exit(::pause());
              MUST_OK(run->Place(child));
              MUST(Observe(child)->limits.pids == 16U);
              MUST(Observe(child)->limits.memory_bytes == 64 * kMiB);
              MUST_OK(run->Kill());
              MUST(WaitFor(child) == 128 + SIGKILL);
              MUST(::waitpid(other, nullptr, WNOHANG) == 0);  // not in the cell: lives
              ::kill(other, SIGKILL);
              (void)WaitFor(other);
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, RemoveKillsAForkBombAndLeavesNothing) {
  EXPECT_EQ(AsUser([] {
              std::string id = NewRunId();
              Result<RunCgroup> run = RunCgroup::Make(id, kLimits);
              MUST_OK(run);
              // Its members become children of this process, which reaps nobody meanwhile.
              pid_t bomb = ForkInto(run.value(), [] {
                for (;;) (void)::fork();
                return 0;
              });
              for (int tries = 0; tries < 2000 && run->ReadEvents()->pids_refusals == 0; ++tries)
                ::usleep(1000);
              MUST(run->ReadEvents()->pids_refusals > 0);
              MUST(!LeftBehind(id).empty());
              MUST_OK(run->Remove());
              MUST(LeftBehind(id).empty());
              MUST(WaitFor(bomb) == 128 + SIGKILL);
              MUST_OK(run->Remove());
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, DestructorLeavesNothing) {
  EXPECT_EQ(AsUser([] {
              std::string id = NewRunId();
              {
                Result<RunCgroup> run = RunCgroup::Make(id, kLimits);
                MUST_OK(run);
                MUST(!LeftBehind(id).empty());
              }
              MUST(LeftBehind(id).empty());
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, FailureHalfWayLeavesNothingAndNamesTheController) {
  EXPECT_EQ(AsUser([] {
              std::string id = NewRunId();
              cell::Limits beyond = kLimits;
              beyond.pids = uint64_t{1} << 40U;  // more than the kernel has: EINVAL
              Result<RunCgroup> run = RunCgroup::Make(id, beyond);
              MUST(!run.ok());
              MUST(run.error().code == kUnenforced);
              MUST(run.error().err == EINVAL);
              MUST(run.error().text.find("pids") != std::string::npos);
              MUST(run.error().text.find("pids.max") != std::string::npos);
              MUST(LeftBehind(id).empty());
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, RunIdInUseIsRefusedAndTheFirstRunStays) {
  EXPECT_EQ(AsUser([] {
              std::string id = NewRunId();
              Result<RunCgroup> first = RunCgroup::Make(id, kLimits);
              MUST_OK(first);
              Result<RunCgroup> second = RunCgroup::Make(id, kLimits);
              MUST(!second.ok() && second.error().err == EEXIST);
              MUST(WaitFor(ForkInto(first.value(), [] { return 5; })) == 5);
              MUST(!RunCgroup::Make("../" + id, kLimits).ok());
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, DeadOwnersCgroupsAreSweptAndLivingOnesAreNot) {
  EXPECT_EQ(AsUser([] {
              std::string dead = NewRunId();
              std::string living = NewRunId();
              Result<RunCgroup> alive = RunCgroup::Make(living, kLimits);
              MUST_OK(alive);
              MUST(test::InChild([&]() -> int {
                     Result<RunCgroup> lost = RunCgroup::Make(dead, kLimits);
                     ::_exit(lost.ok() ? 0 : 1);  // no destructor runs
                   }) == 0);
              MUST(!LeftBehind(dead).empty());
              MUST(RunCgroup::Make(NewRunId(), kLimits).ok());
              MUST(LeftBehind(dead).empty());
              MUST(!LeftBehind(living).empty());
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, ManyRunsAtOnceDoNotSweepEachOther) {
  EXPECT_EQ(AsUser([] {
              std::vector<pid_t> makers;
              for (int i = 0; i < 8; ++i) {
                pid_t maker = ::fork();
                if (maker == 0) {
                  for (int round = 0; round < 25; ++round) {
                    Result<RunCgroup> run = RunCgroup::Make(NewRunId(), kLimits);
                    if (!run.ok()) std::fprintf(stderr, "%s\n", run.error().text.c_str());
                    if (!run.ok()) ::_exit(1);
                    if (WaitFor(ForkInto(run.value(), [] { return 5; })) != 5) ::_exit(2);
                  }
                  ::_exit(0);
                }
                makers.push_back(maker);
              }
              for (pid_t maker : makers) MUST(WaitFor(maker) == 0);
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, LimitFilesAreReadOnlyAndHoldTheLimits) {
  EXPECT_EQ(AsUser([] {
              Result<RunCgroup> run = RunCgroup::Make(NewRunId(), kLimits);
              MUST_OK(run);
              Result<std::vector<LimitFile>> files = run->OpenLimitFiles();
              MUST_OK(files);
              std::map<std::string, std::string> content;
              for (const LimitFile& file : files.value()) {
                content[std::string(file.name)] = Trim(sys::ReadAll(file.fd.get(), 4096).value());
                MUST(::write(file.fd.get(), "1", 1) < 0 && errno == EBADF);
              }
              MUST(content["memory"] == "67108864");
              MUST(content["pids"] == "16");
              bool v1 = content["cpu_quota"] == "50000" && content["cpu_period"] == "100000";
              MUST(v1 || content["cpu_max"] == "50000 100000");
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, NoDescriptorSurvivesExec) {
  EXPECT_EQ(AsUser([] {
              auto open_to_children = [] {
                int count = 0;
                for (int fd = 3; fd < 256; ++fd) {
                  int flags = ::fcntl(fd, F_GETFD);
                  if (flags >= 0 && (flags & FD_CLOEXEC) == 0) ++count;
                }
                return count;
              };
              int before = open_to_children();
              Result<RunCgroup> run = RunCgroup::Make(NewRunId(), kLimits);
              MUST_OK(run);
              Result<std::vector<UniqueFd>> entries = run->OpenEntries(true);
              MUST_OK(entries);
              MUST(!entries->empty());
              Result<std::vector<LimitFile>> files = run->OpenLimitFiles();
              MUST_OK(files);
              MUST(open_to_children() == before);
              return 0;
            }),
            0);
}

TEST_F(RunCgroupTest, UserWithoutDirectoriesIsToldWhatToDo) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root to become a user without directories");
  EXPECT_EQ(As(kStranger, kStranger,
               [] {
                 std::string id = NewRunId();
                 Result<RunCgroup> run = RunCgroup::Make(id, kLimits);
                 MUST(!run.ok());
                 const Error& error = run.error();
                 MUST(error.code == kUnenforced);
                 MUST(error.text.find("memory") != std::string::npos);
                 MUST(error.text.find("administrator") != std::string::npos);
                 MUST(error.text.find("taskcell/uid-65534") != std::string::npos);
                 MUST(error.text.find("What to do: ") != std::string::npos);
                 MUST(LeftBehind(id).empty());
                 return 0;
               }),
            0);
}

TEST_F(RunCgroupTest, RootNeedsNoPreparation) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root");
  EXPECT_EQ(test::InChild([] {
              std::string id = NewRunId();
              Result<RunCgroup> run = RunCgroup::Make(id, kLimits);
              MUST_OK(run);
              MUST(WaitFor(ForkInto(run.value(), [] { return ForkUntilRefused(40); })) == 15);
              MUST_OK(run->Remove());
              MUST(LeftBehind(id).empty());
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace taskcell::cgroup

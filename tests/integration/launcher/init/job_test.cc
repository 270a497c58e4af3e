#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"
#include "tests/integration/launcher/init/init_cell.h"

namespace taskcell::test {
namespace {

using cell::ExitReason;
using cell::FrameType;
using ::testing::HasSubstr;

// The processes of the cell but init, as seen from outside: children of `pid`, transitively.
int CountChildren(pid_t pid) {
  Result<std::string> children =
      sys::ReadFile(AT_FDCWD, Text("/proc/", pid, "/task/", pid, "/children"), 65536);
  return children.ok() ? static_cast<int>(Words(children.value()).size()) : -1;
}

TEST(JobTest, OutputErrorAndStatusComeBack) {
  InitCell cell;
  InitCell::Output output = cell.Run(Shell("echo out; echo err >&2; exit 7"));
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->code, 7);
  EXPECT_EQ(output.exit->signal, 0);
  EXPECT_EQ(output.exit->reason, ExitReason::kExited);
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.err, "err\n");
  EXPECT_GT(output.exit->wall_us, 0U);
}

TEST(JobTest, AKilledProgramIsReportedWithItsSignal) {
  InitCell cell;
  InitCell::Output output = cell.Run(Shell("kill -SEGV $$"));
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->signal, SIGSEGV);
  EXPECT_EQ(output.exit->code, 0);
}

TEST(JobTest, TheEnvironmentIsTheJobsAndNothingElse) {
  InitCell cell;
  cell::Job job = Shell("env");
  job.environment = {"PATH=/usr/bin:/bin", "ONE=1"};
  InitCell::Output output = cell.Run(job);
  EXPECT_THAT(output.out, HasSubstr("ONE=1\n"));
  EXPECT_THAT(output.out, HasSubstr("PATH=/usr/bin:/bin\n"));
  // What a shell sets by itself: PWD, OLDPWD, _ and SHLVL.
  for (std::string_view line : Split(output.out, '\n')) {
    EXPECT_TRUE(line.empty() || line.starts_with("ONE=") || line.starts_with("PATH=") ||
                line.starts_with("PWD=") || line.starts_with("_=") || line.starts_with("SHLVL=") ||
                line.starts_with("OLDPWD="))
        << line;
  }
}

TEST(JobTest, TheJobHasOnlyItsThreeDescriptors) {
  InitCell cell;
  cell::Job job;
  job.argv = {"ls", "/proc/self/fd"};
  job.environment = {"PATH=/usr/bin"};
  job.stdio = cell::JobStdio::kRelay;
  EXPECT_EQ(cell.Run(job).out, "0\n1\n2\n3\n");  // 3 is ls's own
}

TEST(JobTest, HomeDirectoriesAndFilesArePrivate) {
  InitCell cell;
  cell::Job job = Shell(
      "stat -c '%a %n' /workspace/home /workspace/home/.x /workspace/home/.x/y "
      "/workspace/home/run.sh /tmp/cache/deep; cat /workspace/home/.x/y; pwd");
  job.home = "/workspace/home";
  job.directories = {"/tmp/cache/deep"};
  job.files = {{".x/y", 0600, "content\n"}, {"run.sh", 0700, ""}};
  EXPECT_EQ(cell.Run(job).out,
            "700 /workspace/home\n700 /workspace/home/.x\n600 /workspace/home/.x/y\n"
            "700 /workspace/home/run.sh\n700 /tmp/cache/deep\ncontent\n/workspace\n");
}

TEST(JobTest, AFileOutsideWhatTheJobMayWriteIsRefused) {
  InitCell cell;
  cell::Job job = Shell("true");
  job.home = "/usr/home";
  job.files = {{"x", 0600, ""}};
  InitCell::Output output = cell.Run(job);
  ASSERT_TRUE(output.refusal);
  EXPECT_EQ(output.refusal->stage, "home");
  EXPECT_FALSE(output.exit);
}

struct Refusal {
  const char* name;
  std::vector<std::string> argv;
  std::string directory;
  const char* stage;
  int err;
};

class RefusedJobTest : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedJobTest, NamesTheStageAndTheReason) {
  InitCell cell;
  cell::Job job = Shell("true");
  job.argv = GetParam().argv;
  job.working_directory = GetParam().directory;
  InitCell::Output output = cell.Run(job);
  ASSERT_TRUE(output.refusal);
  EXPECT_EQ(output.refusal->stage, GetParam().stage);
  EXPECT_EQ(output.refusal->err, GetParam().err);
}

INSTANTIATE_TEST_SUITE_P(
    Each, RefusedJobTest,
    ::testing::Values(Refusal{"NotFound", {"no-such-program"}, "/workspace", "exec", ENOENT},
                      Refusal{"NotThere", {"/usr/no-such-program"}, "/workspace", "exec", ENOENT},
                      Refusal{
                          "NotExecutable", {"/usr/lib/os-release"}, "/workspace", "exec", EACCES},
                      Refusal{"Directory", {"/usr"}, "/workspace", "exec", EACCES},
                      Refusal{"EmptyName", {""}, "/workspace", "exec", ENOENT},
                      Refusal{"WorkingDirectory", {"true"}, "/nowhere", "chdir", ENOENT}),
    [](const auto& tested) { return tested.param.name; });

TEST(JobTest, StandardInputArrivesWholeThenEnds) {
  InitCell cell;
  cell::Job job = Shell("wc -c");
  job.input.assign(cell::kMaxInputBytes, 'p');
  EXPECT_EQ(cell.Run(job).out, std::to_string(cell::kMaxInputBytes) + "\n");
}

TEST(JobTest, AnInputNobodyReadsBlocksNothing) {
  InitCell cell;
  cell::Job job = Shell("exec 0<&-; echo done");
  job.input.assign(cell::kMaxInputBytes, 'p');
  InitCell::Output output = cell.Run(job);
  EXPECT_EQ(output.out, "done\n");
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->code, 0);
}

TEST(JobTest, BothStreamsArriveInFullWhileTheReaderIsSlow) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Shell("head -c 8000000 /dev/zero; head -c 3000000 /dev/zero >&2")));
  // Nobody reads the gate: the job is held back by its own full pipe, and init holds one frame.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Result<std::string> status = sys::ReadFile(AT_FDCWD, Text("/proc/", cell.pid(), "/status"), 8192);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(CountChildren(cell.pid()), 1);
  InitCell::Output output = cell.Finish();
  EXPECT_EQ(output.out.size(), 8000000U);
  EXPECT_EQ(output.err.size(), 3000000U);
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->code, 0);
}

TEST(JobTest, WhatTheJobLeavesRunningIsKilledAndReaped) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Shell("for i in 1 2 3; do setsid sleep 1000 & done; echo started")));
  InitCell::Output output = cell.Finish(10'000);
  EXPECT_EQ(output.out, "started\n");
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->reason, ExitReason::kExited);
  EXPECT_EQ(CountChildren(cell.pid()), 0);  // init stays, alone, without a zombie
  cell.Send(FrameType::kDone);
  EXPECT_EQ(cell.Wait(), 0);
}

TEST(JobTest, OrphansAreReapedWhileTheJobRuns) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(
      cell.Start(Shell("for i in $(seq 200); do (true & ) ; done; echo ready; sleep 1000")));
  std::optional<cell::FrameReader::Message> ready = cell.Next();
  ASSERT_TRUE(ready);
  int left = -1;
  for (int tries = 0; tries < 100 && left != 1; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    left = CountChildren(cell.pid());
  }
  EXPECT_EQ(left, 1);  // the job itself
  cell.Send(FrameType::kCancel);
  EXPECT_TRUE(cell.Finish().exit);
}

TEST(JobTest, CancelKillsEverything) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Shell("trap '' TERM INT; setsid sleep 1000 & sleep 1000")));
  cell.Send(FrameType::kCancel);
  InitCell::Output output = cell.Finish(5000);
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->reason, ExitReason::kCancelled);
  EXPECT_EQ(output.exit->signal, SIGKILL);
  EXPECT_EQ(CountChildren(cell.pid()), 0);
}

TEST(JobTest, TheTimeLimitEndsTheJob) {
  InitCell cell;
  cell::Job job = Shell("echo before; trap '' TERM; while :; do :; done");
  job.timeout_ms = 300;
  InitCell::Output output = cell.Run(job);
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->reason, ExitReason::kDeadline);
  EXPECT_GE(output.exit->wall_us, 300'000U);
  EXPECT_LT(output.exit->wall_us, 5'000'000U);
  EXPECT_GT(output.exit->user_us + output.exit->system_us, 50'000U);
  EXPECT_EQ(output.out, "before\n");
}

TEST(JobTest, AJobWithinItsTimeLimitIsLeftAlone) {
  InitCell cell;
  cell::Job job = Shell("echo fine");
  job.timeout_ms = 20'000;
  InitCell::Output output = cell.Run(job);
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->reason, ExitReason::kExited);
}

TEST(JobTest, AClosedGateKillsEverythingAndInitEnds) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Shell("setsid sleep 1000 & sleep 1000")));
  cell.CloseGate();
  EXPECT_EQ(cell.Wait(), 125);
}

TEST(JobTest, AGateClosedBeforeTheJobEndsInit) {
  InitCell cell;
  (void)cell.Attestation();
  cell.CloseGate();
  EXPECT_EQ(cell.Wait(), 125);
}

TEST(JobTest, ASignalReachesTheJobsGroupAndTheJobMayHandleIt) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(
      cell.Start(Shell("trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.1; done")));
  ASSERT_TRUE(cell.Next());  // ready
  cell.Send(FrameType::kSignal, std::string(1, SIGTERM));
  InitCell::Output output = cell.Finish();
  EXPECT_EQ(output.out, "got\n");
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->code, 3);
}

// Attack: every signal a job can send to process 1. The control is the job's own group, which the
// same kill(1) ends.
TEST(JobTest, InitIsUnmovedBySignalsFromInside) {
  InitCell cell;
  InitCell::Output output =
      cell.Run(Shell("for s in $(seq 1 64); do kill -$s 1 2>/dev/null && echo sent $s; done; sleep "
                     "0.1; echo alive; "
                     "sleep 1000 & kill -9 $!; wait $!; echo $?"));
  EXPECT_THAT(output.out, HasSubstr("alive\n137\n"));
  ASSERT_TRUE(output.exit);
  EXPECT_EQ(output.exit->code, 0);
}

TEST(JobTest, AJobThatStopsItselfIsContinued) {
  InitCell cell;
  InitCell::Output output = cell.Run(Shell("kill -STOP $$; echo continued"));
  EXPECT_EQ(output.out, "continued\n");
}

TEST(JobTest, ABlockedGateDoesNotHoldUpTheTimeLimit) {
  InitCell cell;
  (void)cell.Attestation();
  cell::Job job = Shell("cat /dev/zero");
  job.timeout_ms = 300;
  ASSERT_TRUE(cell.Start(job));
  int left = -1;
  for (int tries = 0; tries < 100 && left != 0; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    left = CountChildren(cell.pid());
  }
  EXPECT_EQ(left, 0);
}

std::string Packet(FrameType type, bool last, uint32_t sequence, std::string_view payload) {
  return cell::EncodeFrame({type, last, sequence, payload});
}

class HostileHostTest : public ::testing::TestWithParam<std::vector<std::string>> {};

// Whatever breaks the protocol before a job came: nothing runs and init ends.
TEST_P(HostileHostTest, InitRefusesAndEnds) {
  InitCell cell;
  (void)cell.Attestation();
  for (const std::string& packet : GetParam()) cell.SendRaw(packet);
  std::optional<cell::FrameReader::Message> answer = cell.Next();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->type, FrameType::kRefused);
  cell.CloseGate();
  EXPECT_EQ(cell.Wait(), 125);
}

INSTANTIATE_TEST_SUITE_P(
    Each, HostileHostTest,
    ::testing::Values(std::vector<std::string>{"x"},
                      std::vector<std::string>{std::string(70'000, 'x')},
                      std::vector<std::string>{Packet(FrameType::kJob, true, 1, "")},
                      std::vector<std::string>{Packet(FrameType::kJob, true, 0, "not a job")},
                      std::vector<std::string>{Packet(FrameType::kSignal, true, 0, "\x09")},
                      std::vector<std::string>{Packet(FrameType::kJob, false, 0,
                                                      std::string(cell::kMaxFramePayload, 'x')),
                                               Packet(FrameType::kCancel, true, 1, "")}));

TEST(JobTest, OtherStreamsThanTheCellWasMadeForAreRefused) {
  InitCell cell;
  (void)cell.Attestation();
  cell::Job job = Shell("true");
  job.stdio = cell::JobStdio::kInherit;
  EXPECT_FALSE(cell.Start(job));
  EXPECT_THAT(cell.Finish().refusal->text, HasSubstr("standard streams"));
}

TEST(JobTest, FramesOutOfOrderWhileItRunsKillTheJob) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Shell("sleep 1000")));
  cell.SendRaw(Packet(FrameType::kCancel, true, 77, ""));
  EXPECT_EQ(cell.Wait(), 125);
}

TEST(JobTest, DoneBeforeTheEndKillsTheJob) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Shell("sleep 1000")));
  cell.Send(FrameType::kDone);
  EXPECT_EQ(cell.Wait(), 125);
}

TEST(JobTest, ADescriptorSentToInitIsDiscarded) {
  InitCell cell;
  (void)cell.Attestation();
  UniqueFd null = sys::Open("/dev/null", O_RDONLY).value();
  cell::Job job;
  job.argv = {"ls", "/proc/self/fd"};
  job.environment = {"PATH=/usr/bin"};
  job.stdio = cell::JobStdio::kRelay;
  std::string packet = Packet(FrameType::kJob, true, 0, cell::EncodeJob(job));
  ASSERT_TRUE(sys::SendPacket(cell.gate(), packet, null.get()).ok());
  EXPECT_EQ(cell.Finish().out, "0\n1\n2\n3\n");
}

TEST(JobTest, InitStaysUntilTheEvidenceIsRead) {
  InitCell cell;
  (void)cell.Attestation();
  ASSERT_TRUE(cell.Start(Shell("true")));
  ASSERT_TRUE(cell.Finish().exit);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(::kill(cell.pid(), 0), 0);
  Result<std::string> stat = sys::ReadFile(AT_FDCWD, Text("/proc/", cell.pid(), "/stat"), 4096);
  EXPECT_THAT(stat.value(), HasSubstr(") S "));  // sleeping, no zombie
  cell.Send(FrameType::kDone);
  EXPECT_EQ(cell.Wait(), 0);
}

TEST(JobTest, InitGoesByItselfWhereTheEvidenceOutlivesIt) {
  InitCell cell;
  (void)cell.Attestation();
  cell::Job job = Shell("exit 4");
  job.stays = false;
  ASSERT_TRUE(cell.Start(job));
  EXPECT_EQ(cell.Finish().exit->code, 4);
  EXPECT_EQ(cell.Wait(), 0);
}

TEST(JobTest, TheJobDiesBeforeInitWhenMemoryRunsOut) {
  InitCell cell;
  EXPECT_EQ(cell.Run(Shell("cat /proc/self/oom_score_adj")).out, "1000\n");
}

}  // namespace
}  // namespace taskcell::test

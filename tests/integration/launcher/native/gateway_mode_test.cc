#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "launcher/base/text.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/compare.h"
#include "launcher/cgroup/observe.h"
#include "launcher/native/gate_client.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"
#include "tests/support/hung_files.h"
#include "tests/support/launch.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;

constexpr int kPlanNumber = 10;
constexpr int kGateNumber = 11;
constexpr int kStatusNumber = 12;
constexpr int kLineTimeoutMs = 30'000;

// taskcell-launch as the gateway starts it.
struct Started {
  sys::Child launcher;
  UniqueFd gate;
  UniqueFd status;

  // The next line of the status descriptor, or what came before its end.
  std::string Line() const {
    std::string line;
    char byte = 0;
    while (sys::Poll(status.get(), POLLIN, kLineTimeoutMs).value() != 0 &&
           ::read(status.get(), &byte, 1) == 1 && byte != '\n')
      line += byte;
    return line;
  }
};

// Root becomes that user. A capability that it keeps, if any, comes along over every exec.
bool BecomeUser(uid_t uid, gid_t gid, std::optional<uint32_t> kept) {
  if (::setgroups(0, nullptr) != 0 || ::prctl(PR_SET_KEEPCAPS, kept ? 1 : 0, 0, 0, 0) != 0 ||
      ::setresgid(gid, gid, gid) != 0 || ::setresuid(uid, uid, uid) != 0)
    return false;
  if (!kept) return true;
  const uint32_t bit = 1U << *kept;
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  const struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{bit, bit, bit}, {}};
  return ::syscall(SYS_capset, &header, sets) == 0 &&
         ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, *kept, 0, 0) == 0;
}

class GatewayModeTest : public LaunchTest {
 protected:
  cell::CellPlan Plan() const {
    cell::CellPlan plan;
    plan.run_id = "00112233445566778899aabbccddeeff";
    plan.agent = "agent";
    plan.uid = 1500;
    plan.gid = 1500;
    plan.tmpfs.push_back({"/tmp", 1U << 20U, 01777, true});
    plan.tmpfs.push_back({"/workspace", 1U << 20U, 0700, true});
    plan.limits = {uint64_t{64} << 20U, 32, 500, 256};
    return plan;
  }

  Started Start(const std::string& plan_bytes, uid_t uid, gid_t gid,
                std::optional<uint32_t> kept = std::nullopt) {
    sys::Pipe plan = sys::MakePipe().value();
    sys::Pipe status = sys::MakePipe().value();
    sys::SocketPair gate = sys::MakePacketPair().value();
    EXPECT_TRUE(sys::WriteAll(plan.write_end.get(), plan_bytes).ok());
    plan.write_end.Reset();
    UniqueFd program = sys::Open(Program("taskcell-launch"), O_PATH).value();
    sys::Cloned cloned = sys::CloneProcess(0).value();
    if (cloned.in_child) {
      EnterDelegatedCgroup(uid);
      bool ready = sys::PlaceDescriptor(plan.read_end.get(), kPlanNumber).ok() &&
                   sys::PlaceDescriptor(gate.second.get(), kGateNumber).ok() &&
                   sys::PlaceDescriptor(status.write_end.get(), kStatusNumber).ok() &&
                   BecomeUser(uid, gid, kept);
      if (ready) {
        (void)sys::ExecuteDescriptor(program.get(),
                                     {"taskcell-launch", "--plan-fd=10", "--gate-fd=11",
                                      "--status-fd=12", "--userns=prefer-subids"},
                                     {});
      }
      sys::ExitNow(99);
    }
    return {std::move(cloned.child), std::move(gate.first), std::move(status.read_end)};
  }

  Started StartAsUser(const std::string& plan) { return Start(plan, user_->uid, user_->gid); }
};

TEST_F(GatewayModeTest, MakesTheCellOfThePlanAndStaysUntilInitEnds) {
  Started started = StartAsUser(cell::EncodePlan(Plan()));
  EXPECT_THAT(started.Line(), testing::StartsWith(R"({"event":"made","pid":)"));
  native::GateClient gate(std::move(started.gate));
  cell::InsideAttestation seen = gate.ReceiveAttestation().value();
  EXPECT_EQ(seen.uids[0], 1500U);
  EXPECT_EQ(seen.limits.pids, 32U);
  cell::Job job;
  job.argv = {"/bin/sh", "-c", "exit 3"};
  job.stdio = cell::JobStdio::kRelay;
  job.environment = {"PATH=/bin"};
  ASSERT_TRUE(gate.SendJob(job).ok());
  cell::FrameReader::Message message;
  do {
    while (!gate.Receive(message).value()) {
    }
  } while (message.type == cell::FrameType::kStarted);
  ASSERT_EQ(message.type, cell::FrameType::kExit);
  EXPECT_EQ(cell::ParseExit(message.payload).value().code, 3);
  ASSERT_TRUE(gate.SendDone().ok());
  EXPECT_THAT(started.Line(), testing::StartsWith(R"({"event":"ended")"));
  EXPECT_EQ(started.launcher.Wait().value().status, 0);
}

TEST_F(GatewayModeTest, AnAmbientCapabilityOfTheCallerIsInNoSetTheCellAttests) {
  Started started = Start(cell::EncodePlan(Plan()), user_->uid, user_->gid, CAP_NET_RAW);
  EXPECT_THAT(started.Line(), HasSubstr("made"));
  const std::string caller = ReadText(Text("/proc/", started.launcher.pid(), "/status"));
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
    EXPECT_THAT(caller, HasSubstr(Text(set, ":\t0000000000002000"))) << "control";
  native::GateClient gate(std::move(started.gate));
  cell::Attestation seen;
  seen.inside = gate.ReceiveAttestation().value();
  EXPECT_EQ(seen.inside.capabilities, (std::array<uint64_t, 5>{}));
  for (const cell::Mismatch& mismatch : cell::Compare(Plan(), cell::Engine::kNative, seen))
    EXPECT_THAT(mismatch.field, testing::Not(HasSubstr("capabilities")));
  started.status.Reset();
  (void)started.launcher.Wait();  // the host guard looks for what is left
}

TEST_F(GatewayModeTest, DiesWithTheReaderOfItsStatus) {
  Started started = StartAsUser(cell::EncodePlan(Plan()));
  EXPECT_THAT(started.Line(), HasSubstr("made"));
  started.status.Reset();
  ASSERT_NE(sys::Poll(started.launcher.pidfd(), POLLIN, kLineTimeoutMs).value(), 0);
  (void)started.launcher.Wait();  // the host guard looks for what is left
}

TEST_F(GatewayModeTest, EndsTheCellOnSigterm) {
  Started started = StartAsUser(cell::EncodePlan(Plan()));
  EXPECT_THAT(started.Line(), HasSubstr("made"));
  ASSERT_TRUE(started.launcher.Signal(SIGTERM).ok());
  EXPECT_THAT(started.Line(), HasSubstr(R"("signal":9)"));
  EXPECT_EQ(started.launcher.Wait().value().status, 0);
}

// The cell's child waits for a source of a mount that does not answer; nothing else has a limit.
TEST_F(GatewayModeTest, SigtermEndsItWhileTheCellIsMadeAndLeavesNothing) {
  TASKCELL_REQUIRE(HasFuse(), kNeedsFuse);
  const std::string hung = scratch_ + "/hung";
  std::filesystem::create_directory(hung);
  cell::CellPlan plan = Plan();
  plan.mounts.push_back({hung, "/data", cell::EntryKind::kDirectory, 1, 1, false});
  int status = InChild([&] {
    if (!EnterOwnMounts()) return 90;
    const HungFiles files(hung, HungFiles::Answers::kNothing);
    if (!files.mounted()) return 91;
    Started started = StartAsUser(cell::EncodePlan(plan));
    constexpr int kLookMs = 500;
    if (sys::Poll(started.status.get(), POLLIN, kLookMs).value() != 0) return 1;  // it waits
    const auto begun = std::chrono::steady_clock::now();
    if (!started.launcher.Signal(SIGTERM).ok()) return 2;
    if (started.Line().find(R"("code":"stopped")") == std::string::npos) return 3;
    if (started.launcher.Wait()->status != 125) return 4;
    return std::chrono::steady_clock::now() - begun < std::chrono::seconds(5) ? 0 : 5;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(GatewayModeTest, ABadPlanIsAFailedEvent) {
  std::string plan = cell::EncodePlan(Plan());
  for (const std::string& bytes : {std::string(), plan.substr(0, plan.size() - 1), plan + "x"}) {
    Started started = StartAsUser(bytes);
    EXPECT_THAT(started.Line(), testing::StartsWith(R"({"event":"failed","kind":)"));
    EXPECT_EQ(started.launcher.Wait().value().status, 125);
  }
}

TEST_F(GatewayModeTest, LimitsThatCannotBeEnforcedKeepTheirCode) {
  Started started = Start(cell::EncodePlan(Plan()), 65534, 65534);
  EXPECT_THAT(started.Line(), HasSubstr(R"("code":"resource_limits_unenforced")"));
}

TEST_F(GatewayModeTest, ASourceThatWasReplacedIsRefused) {
  std::string path = MakeFile("source", "planned");
  struct stat info = {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  UniqueFd pin = sys::Open(path, O_PATH).value();
  cell::CellPlan plan = Plan();
  plan.mounts.push_back({path, "/data", cell::EntryKind::kFile, info.st_dev, info.st_ino, false});
  Started control = StartAsUser(cell::EncodePlan(plan));
  EXPECT_THAT(control.Line(), HasSubstr("made"));
  control.status.Reset();
  (void)control.launcher.Wait();
  std::filesystem::rename(MakeFile("other", "replaced"), path);
  Started started = StartAsUser(cell::EncodePlan(plan));
  EXPECT_THAT(started.Line(), HasSubstr("replaced since"));
}

// What the launcher is handed differs in one field from what its cell is compared with.
class DeviationTest : public GatewayModeTest {
 protected:
  cell::CellPlan Compared() const {
    cell::CellPlan plan = Plan();
    plan.limits.file_bytes = 1U << 20U;
    std::string path = scratch_ + "/source";
    if (!std::filesystem::exists(path)) MakeFile("source", "x");
    struct stat info = {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    plan.mounts.push_back({path, "/data", cell::EntryKind::kFile, info.st_dev, info.st_ino, false});
    return plan;
  }

  std::vector<std::string> FieldsOf(const cell::CellPlan& made) {
    return FieldsOf(made, Compared());
  }

  std::vector<std::string> FieldsOf(const cell::CellPlan& made, const cell::CellPlan& compared) {
    Started started = StartAsUser(cell::EncodePlan(made));
    std::string line = started.Line();
    std::size_t at = line.find(R"("pid":)");
    if (at == line.npos) return {line};
    cell::Attestation seen;
    native::GateClient gate(std::move(started.gate));
    seen.inside = gate.ReceiveAttestation().value();
    seen.outside = cgroup::Observe(static_cast<pid_t>(std::stol(line.substr(at + 6)))).value();
    std::vector<std::string> fields;
    for (const cell::Mismatch& mismatch : cell::Compare(compared, cell::Engine::kNative, seen))
      fields.push_back(mismatch.field);
    started.status.Reset();
    (void)started.launcher.Wait();
    return fields;
  }
};

TEST_F(DeviationTest, InOneFieldIsThatMismatchAndNoOther) {
  using Fields = std::vector<std::string>;
  using Plan = cell::CellPlan&;
  const std::pair<Fields, std::function<void(Plan)>> rows[] = {
      {{}, [](Plan /*as compared*/) {}},
      {{"uid"}, [](Plan p) { p.uid = 1501; }},
      {{"gid"}, [](Plan p) { p.gid = 1501; }},
      {{"hostname"}, [](Plan p) { p.hostname = "other"; }},
      {{"limits.memory", "limits.memory_and_swap"},
       [](Plan p) { p.limits.memory_bytes = uint64_t{32} << 20U; }},
      {{"limits.pids"}, [](Plan p) { p.limits.pids = 33; }},
      {{"limits.cpu"}, [](Plan p) { p.limits.cpu_millis = 501; }},
      {{"limits.nofile"}, [](Plan p) { p.limits.nofile = 255; }},
      {{"limits.file_size"}, [](Plan p) { p.limits.file_bytes = 2U << 20U; }},
      {{"tmpfs:/tmp"}, [](Plan p) { p.tmpfs[0].size_bytes = 2U << 20U; }},
      {{"tmpfs:/tmp"}, [](Plan p) { p.tmpfs[0].read_only = true; }},
      {{"tmpfs:/tmp"}, [](Plan p) { p.tmpfs[0].mode = 0700; }},
      {{"tmpfs:/workspace"}, [](Plan p) { p.tmpfs[1].exec = false; }},
      {{"mount:/data"}, [](Plan p) { p.mounts[0].writable = true; }},
      {{"mount:/data"}, [](Plan p) { p.mounts.clear(); }},
      {{"mount:/more"},
       [](Plan p) {
         p.mounts.push_back(p.mounts[0]);
         p.mounts[1].target = "/more";
       }},
  };
  for (const auto& [fields, change] : rows) {
    cell::CellPlan made = Compared();
    change(made);
    EXPECT_EQ(FieldsOf(made), fields);
  }
}

// What the cell was to have and has not: made as ever, compared with a plan that asks for more.
TEST_F(DeviationTest, WhatWasLeftOutIsThatMismatchAndNoOther) {
  using Fields = std::vector<std::string>;
  using Plan = cell::CellPlan&;
  const std::pair<Fields, std::function<void(Plan)>> rows[] = {
      {{}, [](Plan /*as made*/) {}},
      {{"limits.cpu_set"}, [](Plan p) { p.limits.cpu_set = "0"; }},
      {{"limits.io_weight"}, [](Plan p) { p.limits.io_weight = 50; }},
      {{"limits.oom_group"}, [](Plan p) { p.limits.oom_group = true; }},
      {{"proc"}, [](Plan p) { p.proc_is_subset = true; }},
      {{"mount:/data"}, [](Plan p) { p.mounts[0].follows_links = false; }},
      {{"mount:/data"}, [](Plan p) { ++p.mounts[0].inode; }},
      {{"mount:/data"}, [](Plan p) { ++p.mounts[0].device; }},
      {{"mount:/data"}, [](Plan p) { p.mounts[0].kind = cell::EntryKind::kDirectory; }},
      {{"listener"}, [](Plan p) { p.network = cell::NetworkMode::kProvider; }},
      {{"listener", "tunnel listener"},
       [](Plan p) {
         p.network = cell::NetworkMode::kProvider;
         p.tunnels = true;
       }},
  };
  for (const auto& [fields, change] : rows) {
    cell::CellPlan compared = Compared();
    change(compared);
    EXPECT_EQ(FieldsOf(Compared(), compared), fields);
  }
}

// A root directory where the host's root was to be, and another than that of the plan.
TEST_F(DeviationTest, AnotherRootIsSeen) {
  const std::string path = MakeRootfs();
  for (const char* directory : {"run", "home"})
    std::filesystem::create_directory(path + "/" + directory);
  std::ofstream(path + "/data").flush();
  struct stat info = {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  cell::CellPlan made = Compared();
  made.root = cell::RootKind::kRootfs;
  made.root_source = path;
  made.root_device = info.st_dev;
  made.root_inode = info.st_ino;
  EXPECT_EQ(FieldsOf(made, made), std::vector<std::string>());
  cell::CellPlan other = made;
  ++other.root_inode;
  EXPECT_EQ(FieldsOf(made, other), std::vector<std::string>{"root.identity"});
  EXPECT_THAT(FieldsOf(made, Compared()), testing::Contains("root.identity"));
  // What is at the path must be what was planned, or nothing is made of it. `terminal` only says
  // what the job is given, after the comparison.
  EXPECT_THAT(FieldsOf(other, other)[0], HasSubstr(R"("event":"failed")"));
}

TEST_F(DeviationTest, AnotherFilterIsSeenWhateverItDenies) {
  cell::CellPlan made = Compared();
  const sock_filter allow_all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  made.filter.assign(reinterpret_cast<const char*>(&allow_all), sizeof allow_all);
  EXPECT_THAT(FieldsOf(made), testing::AllOf(testing::Contains("seccomp.filter"),
                                             testing::Contains("denied:mount")));
}

}  // namespace
}  // namespace taskcell::test

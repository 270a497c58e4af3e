// The last moment at which a task can be ended without its job ever existing: the cell is verified,
// the job not yet handed over.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "launcher/sys/socket.h"
#include "tests/unit/gateway/task/run_task_fixture.h"
#include "tests/unit/gateway/task/waiting_cell.h"

namespace taskcell::gateway {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class GoOnTest : public RunTaskTest {
 protected:
  void SetUp() override {
    RunTaskTest::SetUp();
    state_.make_cell = [this](const cell::CellPlan& plan) {
      sys::SocketPair pair = sys::MakePacketPair().value();
      first_process_ = std::move(pair.first);
      if (attests_) Attest(plan, first_process_.get(), change_);
      return std::make_unique<WaitingCell>(plan, std::move(pair.second), on_observe_, change_,
                                           stays_);
    };
    surroundings_.broker = [this]() -> Result<Broker*> {
      ++broker_asked_;
      return Error(Kind::kInternal, "this test has no broker").Coded("transport_failed");
    };
  }

  // How many packets the first process was sent before the gate closed.
  int PacketsReceived() const {
    std::string buffer(cell::kMaxFrameBytes, '\0');
    for (int packets = 0;; ++packets) {
      Result<sys::Packet> packet = sys::ReceivePacket(first_process_.get(), buffer, false);
      if (!packet.ok() || packet->size == 0) return packets;
    }
  }

  // The cell was verified, and that was all.
  void ExpectNoJob(const TaskAnswer& answer) const {
    EXPECT_NE(answer.receipt_json.find("\"verified\":true"), std::string::npos)
        << "control: " << answer.receipt_json;
    EXPECT_EQ(broker_asked_, 0);
    EXPECT_EQ(PacketsReceived(), 0);
    EXPECT_FALSE(answer.reply.has_value());
  }

  // The audit log with every time replaced by the same.
  std::string Events() const {
    std::string log = AuditLog();
    for (std::size_t at = log.find("\"timestamp\":\""); at != std::string::npos;
         at = log.find("\"timestamp\":\"", at + 1))
      log.replace(at + 13, 32, "T");
    return log;
  }

  std::function<void()> on_observe_ = [] {};
  std::function<void(cell::Attestation&)> change_;
  bool stays_ = false;
  bool attests_ = true;
  UniqueFd first_process_;
  int broker_asked_ = 0;
};

TEST_F(GoOnTest, VerifiedCellOfATaskNobodyStoppedGoesOn) {
  EXPECT_EQ(Run().code, "transport_failed");
  EXPECT_EQ(broker_asked_, 1);
}

TEST_F(GoOnTest, CancelAfterTheVerificationStartsNoJob) {
  sys::Pipe pipe = sys::MakePipe().value();
  surroundings_.cancel_fd = pipe.read_end.get();
  on_observe_ = [&pipe] { ASSERT_TRUE(sys::WriteAll(pipe.write_end.get(), "x").ok()); };
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "stopped");
  ExpectNoJob(answer);
}

// Cancels a task 100 ms after its begin, and expects it to end long before what it waits for would.
void ExpectEndsAtOnce(Surroundings& surroundings, const std::function<TaskAnswer()>& run) {
  sys::Pipe pipe = sys::MakePipe().value();
  surroundings.cancel_fd = pipe.read_end.get();
  std::thread canceller([&pipe] {
    std::this_thread::sleep_for(milliseconds(100));
    pipe.write_end.Reset();
  });
  const steady_clock::time_point begun = steady_clock::now();
  const TaskAnswer answer = run();
  canceller.join();
  EXPECT_GE(steady_clock::now() - begun, milliseconds(90)) << "control: it waited";
  EXPECT_LT(steady_clock::now() - begun, milliseconds(5000));
  EXPECT_EQ(answer.code, "stopped") << answer.message;
}

TEST_F(GoOnTest, CancelWhileTheCellIsToAttestEndsTheTaskAtOnce) {
  attests_ = false;
  ExpectEndsAtOnce(surroundings_, [this] { return Run(); });
  EXPECT_EQ(broker_asked_, 0);
  EXPECT_EQ(PacketsReceived(), 0);
}

TEST_F(GoOnTest, CancelWhileTheAgentDirectoryIsCopiedEndsTheTaskAtOnce) {
  Put("slow", "#!/bin/sh\nexec sleep 60\n");
  ASSERT_EQ(::chmod((path_ + "/slow").c_str(), 0755), 0);
  surroundings_.programs.launch = path_ + "/slow";
  const std::set<std::string> before = Tree();
  ExpectEndsAtOnce(surroundings_, [this] { return Run(); });
  EXPECT_FALSE(state_.plan.has_value());
  EXPECT_EQ(Tree(), before);
}

TEST_F(GoOnTest, CallerThatWentAwayCancelsToo) {
  sys::Pipe pipe = sys::MakePipe().value();
  surroundings_.cancel_fd = pipe.read_end.get();
  on_observe_ = [&pipe] { pipe.write_end.Reset(); };
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "stopped");
  ExpectNoJob(answer);
}

TEST_F(GoOnTest, DeadlineAfterTheVerificationStartsNoJob) {
  Put("agents/a1/agent.toml",
      "[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n[container]\nnetwork_access = true\n"
      "sandbox_enabled = true\ntimeout_ms = 1000\n");
  const steady_clock::time_point past_it = steady_clock::now() + milliseconds(1050);
  on_observe_ = [past_it] { std::this_thread::sleep_until(past_it); };
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "timeout");
  EXPECT_EQ(answer.message, "the sandbox task timed out after 1 s");
  ExpectNoJob(answer);
}

// What was asked for by name shows in the answer, the receipt and the audit log.
TEST_F(GoOnTest, CellWithoutAProcessorLimitIsToldOfWhereItIsAllowed) {
  change_ = [](cell::Attestation& seen) {
    seen.inside.limits.cpu_quota_us.reset();
    seen.outside.limits.cpu_quota_us.reset();
  };
  EXPECT_EQ(Run().code, "resource_limits_unenforced") << "control: it is not allowed";
  std::filesystem::remove(path_ + "/security_audit.jsonl");
  Put("config.toml", "[taskcell]\nengine = \"native\"\nallow_missing = [\"cpu\"]\n");
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "transport_failed") << answer.message;
  constexpr std::string_view kTold = "the cell had no processor limit";
  ASSERT_FALSE(answer.warnings.empty());
  EXPECT_NE(answer.warnings.front().find(kTold), std::string::npos) << answer.warnings.front();
  EXPECT_NE(answer.receipt_json.find(kTold), std::string::npos) << answer.receipt_json;
  EXPECT_EQ(Events(),
            "{\"timestamp\":\"T\",\"event_type\":\"task_sandbox_weakened\",\"agent_id\":\"a1\","
            "\"severity\":\"warning\",\"details\":{\"missing\":\"cpu\",\"runtime\":\"claude\"}}\n");
}

TEST_F(GoOnTest, CellThatStaysIsAuditedByTheFamilysName) {
  stays_ = true;
  Agent("a1", "[runtime]\nprovider = \"openai_compat\"\n[model]\npreferred = \"openai/m\"\n");
  surroundings_.environment["OPENAI_API_KEY"] = "sk-0123456789";
  surroundings_.programs.loop = "/usr/bin/true";
  EXPECT_EQ(Run().code, "transport_failed");
  EXPECT_EQ(Events(),
            "{\"timestamp\":\"T\",\"event_type\":\"task_sandbox_cleanup_failed\",\"agent_id\":"
            "\"a1\",\"severity\":\"warning\",\"details\":{\"count\":1,\"reason\":"
            "\"container_remove_failed\",\"runtime\":\"openai-compat\"}}\n");
}

}  // namespace
}  // namespace taskcell::gateway

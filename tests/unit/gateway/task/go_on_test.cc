// The last moment at which a task can be ended without its job ever existing: the cell is verified,
// the job not yet handed over.
#include <gtest/gtest.h>
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
      Attest(plan, first_process_.get());
      return std::make_unique<WaitingCell>(plan, std::move(pair.second), on_observe_);
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

  std::function<void()> on_observe_ = [] {};
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

}  // namespace
}  // namespace taskcell::gateway

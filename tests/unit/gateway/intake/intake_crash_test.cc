// A gateway that is killed while it looks at the queues, at every call that changes a file.
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/fixture.h"
#include "tests/support/kill_at_call.h"
#include "tests/unit/gateway/intake/intake_fixture.h"

namespace taskcell::gateway {
namespace {

class IntakeCrashTest : public IntakeFixture {
 protected:
  static constexpr int kKilled = 137;

  // One look in a process of its own; 0: it met no trouble.
  int LookElsewhere() const { return test::Run({ONE_LOOK, directory_.path()}).status; }
  // The same, killed as it is about to make its change number `nth`.
  int LookAndDie(int nth) const {
    return test::KillAtCall(
        [this] {
          (void)::setenv("ASAN_OPTIONS", "detect_leaks=0", 1);  // none are found while traced
          ::execl(ONE_LOOK, ONE_LOOK, directory_.path().c_str(), nullptr);
        },
        {SYS_write, SYS_pwrite64, SYS_rename, SYS_renameat, SYS_renameat2, SYS_fsync, SYS_unlink,
         SYS_unlinkat, SYS_fdatasync, SYS_ftruncate},
        nth);
  }

  // Empties the queues and fills them with what a look has to do: messages to be taken from both,
  // one that is refused, and replies that are due in both.
  void Fill(int round) {
    intake_.reset();
    directory_.Put(kBus, Message(Id("old", round), "a0", "old"));
    Queue("DELETE FROM message_queue");
    Row(Id("older", round), "a0", "older");
    ASSERT_EQ(LookElsewhere(), 0);
    ASSERT_EQ(RunAll(Reply("the reply")).size(), 2U);
    directory_.Put(kBus, Message(Id("m1", round), "a1", Id("one", round)) +
                             Message(Id("m2", round), "a1", Id("two", round)) +
                             Message(Id("m3", round), "a2", Id("three", round)) +
                             Message(Id("deep", round), "a2", "x", {{"delegation_depth", 5}}));
    Row(Id("q1", round), "a1", Id("four", round));
    Row(Id("q2", round), "a1", Id("five", round));
  }
  static std::string Id(const std::string& name, int round) { return Text(name, "-", round, "."); }

  // What must hold once a look went to its end.
  void ExpectEachOnce(int round) {
    std::string prompts;
    for (const std::string& prompt : RunAll(Reply("the reply"))) prompts += prompt + "\n";
    for (const char* name : {"one", "two", "three", "four", "five"}) {
      const std::size_t at = prompts.find(Id(name, round));
      ASSERT_NE(at, std::string::npos) << name << " is lost; killed at change " << round;
      ASSERT_EQ(prompts.find(Id(name, round), at + 1), std::string::npos)
          << name << " runs twice; killed at change " << round;
    }
    ASSERT_EQ(LookElsewhere(), 0);
    for (const char* name : {"old", "m1", "m2", "m3", "deep"})
      ASSERT_EQ(Replies(Id(name, round)).size(), 1U) << name << "; killed at change " << round;
    for (const char* name : {"older", "q1", "q2"})
      ASSERT_EQ(StateOf(Id(name, round)), "done") << name << "; killed at change " << round;
  }
};

TEST_F(IntakeCrashTest, KilledAtAnyChangeNothingIsLostOrTwice) {
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to kill at a call");
  MakeQueue();
  int round = 1;
  for (int status = kKilled; status == kKilled; ++round) {
    Fill(round);
    ASSERT_FALSE(HasFatalFailure());
    status = LookAndDie(round);
    ASSERT_TRUE(status == kKilled || status == 0) << status;
    ASSERT_EQ(LookElsewhere(), 0);
    ExpectEachOnce(round);
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(round, 20) << "a look changes files more often than that";
}

}  // namespace
}  // namespace taskcell::gateway

#include "launcher/sys/signals.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>

#include "launcher/sys/socket.h"
#include "launcher/sys/termination.h"
#include "tests/support/fixture.h"

namespace taskcell::sys {
namespace {

TEST(CatchSignalsTest, OneThatIsIgnoredStaysSoAndOnlyTheOthersAreCaught) {
  int status = test::InChild([] {
    std::signal(SIGHUP, SIG_IGN);
    CaughtSignals caught = CatchSignals({SIGHUP, SIGTERM}).value();
    if (caught.ignored != std::vector<int32_t>{SIGHUP}) return 1;
    std::raise(SIGHUP);
    if (TakeSignal(caught.fd.get()).value() != 0) return 2;
    std::raise(SIGTERM);
    if (TakeSignal(caught.fd.get()).value() != SIGTERM) return 3;
    return RestoreSignals(caught.mask_before).ok() ? 0 : 4;
  });
  EXPECT_EQ(status, 0);
}

TEST(CatchSignalsTest, WithoutAnyIgnoredAllAreCaught) {
  int status = test::InChild([] {
    CaughtSignals caught = CatchSignals({SIGHUP, SIGTERM}).value();
    std::raise(SIGHUP);
    return caught.ignored.empty() && TakeSignal(caught.fd.get()).value() == SIGHUP ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(CatchTerminationTest, AnIgnoredHangupDoesNotCancelAndATerminationStillDoes) {
  int status = test::InChild([] {
    std::signal(SIGHUP, SIG_IGN);
    UniqueFd asked = CatchTermination().value();
    std::raise(SIGHUP);
    if (Poll(asked.get(), POLLIN, 0).value() != 0) return 1;
    std::raise(SIGTERM);
    return Poll(asked.get(), POLLIN, 0).value() != 0 ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

TEST(CatchTerminationTest, AHangupCancelsUnlessItIsIgnored) {
  int status = test::InChild([] {
    UniqueFd asked = CatchTermination().value();
    std::raise(SIGHUP);
    return Poll(asked.get(), POLLIN, 0).value() != 0 ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::sys

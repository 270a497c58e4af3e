#pragma once

#include <unistd.h>

#include "launcher/base/result.h"
#include "tests/support/fixture.h"

namespace taskcell::test {

// Moves this thread, and what it starts from now on, into a network namespace of this process's
// own, in which nothing is but loopback; once in the life of a process, later calls change nothing.
// Every fixture calls it whose tests may start an AI's program, a stand-in for one, or one by its
// name alone: whatever a mistake makes that program be, it reaches no provider. Needs root; an
// Error also where the namespace shows any interface but "lo".
Status EnterOwnNetwork();

// Moves this thread, of a child that starts what belongs to the host's network, back to where the
// process was before EnterOwnNetwork; ends it where that cannot be.
void ReturnToFirstNetwork();

}  // namespace taskcell::test

// Ends a test's SetUp where the test may start an AI's program and has no network of its own for
// it: skips it where this process is not root, fails it else.
#define TASKCELL_ENTER_OWN_NETWORK()                                                    \
  do {                                                                                  \
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, for a network with nothing in it"); \
    const ::taskcell::Status own_network = ::taskcell::test::EnterOwnNetwork();         \
    ASSERT_TRUE(own_network.ok()) << own_network.error().text;                          \
  } while (false)

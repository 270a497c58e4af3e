#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace taskcell::test {

// The unprivileged user the fixture made (tests/support/fixture.sh).
struct User {
  std::string name;
  uid_t uid;
  gid_t gid;
  std::string home;
};
std::optional<User> TestUser();

// Moves this process, still root, into the place that delegate.sh made for the user on cgroup v2,
// where a process can only be limited below the cgroup it is in. Does nothing on v1 and hybrid
// hosts.
void EnterDelegatedCgroup(uid_t uid);

// The path of one of the programs under test, in a place the test user may execute from.
std::string Program(const std::string& name);

// The socket of the private Docker engine; empty when none answers there.
std::string DockerSocket();

// What a file holds, empty where it cannot be read: also where it is of a process, of /proc, that
// has just ended (a stream's iterators throw then).
std::string ReadText(const std::string& path);

// What a program did. `status` is the exit status, or 128 + n when signal n ended it; both outputs
// are cut at 8 MiB.
struct Outcome {
  int status = -1;
  bool timed_out = false;
  std::string out;
  std::string err;
};

struct RunOptions {
  std::optional<User> user;              // run as this user (ids, no supplementary groups, HOME)
  std::vector<std::string> environment;  // added to PATH, HOME, LANG
  std::string input;                     // stdin
  std::string directory;                 // working directory; empty: "/"
  int timeout_ms = 60000;                // then the whole process group is killed
  std::function<void()> in_child;        // runs in the child just before exec
};
// Runs a program to its end. argv[0] is a path or is looked up in PATH.
Outcome Run(const std::vector<std::string>& argv, const RunOptions& options = {});

// Runs `body` in a forked child and returns its exit status (128 + n for a signal): for anything
// that changes process state. `body` returns the status.
int InChild(const std::function<int()>& body);

}  // namespace taskcell::test

// Skips the test with a reason when a feature of the host is missing; with TASKCELL_TEST_MUST_RUN
// set (CI), fails.
#define TASKCELL_REQUIRE(condition, reason)                     \
  do {                                                          \
    if (!(condition)) {                                         \
      if (::secure_getenv("TASKCELL_TEST_MUST_RUN") != nullptr) \
        FAIL() << "must run: " << (reason);                     \
      GTEST_SKIP() << (reason);                                 \
    }                                                           \
  } while (false)

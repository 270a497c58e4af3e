#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/count_calls.h"

namespace taskcell::bench {

// One command to be compared.
struct Contender {
  std::string name;
  std::vector<std::string> argv;
  bool as_root = false;                // else as the unprivileged user
  std::function<int()> body;           // runs in the child in place of argv; its status
  std::function<bool()> prepare = {};  // runs in the child before argv; false where it failed
};

struct Ids {
  uid_t uid = 0;
  gid_t gid = 0;
};

// What the runs of one contender took, in microseconds.
struct Timing {
  std::vector<double> wall_us;  // from fork to reaped
  // Processor time of it and of everything it started, also of what it left behind (bwrap does not
  // wait for its own cell's end).
  std::vector<double> cpu_us;
  std::vector<double> faults;  // of pages, by it and by everything it waited for
  std::string failure;         // not empty: it did not succeed once, and why
};

// The value below which `share` of the values lie. `values` must not be empty.
double Percentile(std::vector<double> values, double share);

// Runs every contender `rounds` times, one after the other within each round, so that what else the
// machine does meets all of them alike, after one warm-up round. A contender that fails is left out
// from then on.
std::vector<Timing> Compare(const std::vector<Contender>& contenders, int rounds, Ids user);

// System calls of one run and of all it starts; nullopt when it failed, and for a body.
std::optional<test::CallCount> CountCalls(const Contender& contender, Ids user);

// Instructions outside of the kernel of one run and of all it starts, by the processor's own
// counter; nullopt where this machine has none to be used, as most virtual ones.
std::optional<uint64_t> CountInstructions(const Contender& contender, Ids user);

// Largest resident set in KiB of any process named `comm` while the contender runs; nullopt when
// none was seen.
std::optional<uint64_t> ResidentKiB(const Contender& contender, Ids user, const std::string& comm);

struct Resident {
  uint64_t kib = 0;
  uint64_t private_dirty_kib = 0;
};
// What the process named `comm` has resident for most of the time that the contender, which sleeps,
// runs; nullopt when none was seen.
std::optional<Resident> WhileItSleeps(const Contender& contender, Ids user,
                                      const std::string& comm);

}  // namespace taskcell::bench

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/bench/measure.h"

namespace taskcell::bench {

// A row of README's table of starts, and whose median its own is compared with.
struct StartRow {
  Contender contender;
  std::size_t baseline;
};

struct Started {
  Timing timing;
  std::optional<test::CallCount> calls;
};

// Runs each row for its time, in turn, and once more for its system calls.
std::vector<Started> Start(const std::vector<StartRow>& rows, int rounds, Ids user);

// What a clock says here.
enum class Clock {
  kTime,
  kEmulated,      // time, of a machine that is emulated: indicative only
  kInstructions,  // of such a machine, where each takes its one processor a nanosecond (-icount)
};
// kInstructions where `counts` and the processor is an emulated one.
Clock ClockHere(bool counts);

// As README has it, to be pasted there: medians and percentiles in milliseconds, the ratio of the
// medians, page faults and the system calls of one start and of all it starts.
void PrintStartTable(const std::vector<StartRow>& rows, const std::vector<Started>& started);

// The same of an emulated machine: what is counted, and what a clock says only beside it.
void PrintEmulatedTable(const std::vector<StartRow>& rows, const std::vector<Started>& started,
                        Clock clock);

// What one launch is made of: the system calls of each program that ran, the most frequent by name,
// and how many processes, programs, page faults and (by the clock, or where the processor has a
// counter that may be used) instructions it took.
void PrintBreakdown(const Contender& launch, const Started& started, Clock clock, Ids user);

// The ratio of the system calls; "-" where one was not counted.
std::string RatioOfCalls(const Started& of, const Started& to);

// The ratio of the medians.
std::string Ratio(const std::vector<double>& of, const std::vector<double>& to);

}  // namespace taskcell::bench

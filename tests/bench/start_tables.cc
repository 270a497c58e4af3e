#include "tests/bench/start_tables.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <seccomp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "launcher/base/text.h"

namespace taskcell::bench {
namespace {

constexpr double kUsPerMs = 1000;

// What QEMU's emulation, with nothing under it, answers as the hypervisor's name.
bool IsEmulated() {
#if defined(__x86_64__)
  unsigned eax = 0;
  unsigned name[3] = {};
  __cpuid(0x40000000, eax, name[0], name[1], name[2]);
  return std::memcmp(name, "TCGTCGTCGTCG", sizeof name) == 0;
#else
  return false;
#endif
}

std::string Calls(const Started& started) {
  return started.calls ? Text(started.calls->calls) : "-";
}

bool PrintFailure(const StartRow& row, const Started& started, int columns) {
  if (started.timing.failure.empty()) return false;
  std::printf("| %s | not measured: %s |", row.contender.name.c_str(),
              started.timing.failure.c_str());
  for (int left = columns - 1; left > 0; --left) std::printf(" |");
  std::printf("\n");
  return true;
}

constexpr std::size_t kShown = 9;

std::string CallName(uint64_t number) {
  char* name = ::seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, static_cast<int>(number));
  std::string text = name == nullptr ? Text(number) : name;
  std::free(name);
  return text;
}

// The most frequent, and what is left.
std::string Frequent(const std::map<uint64_t, uint64_t>& calls) {
  std::vector<std::pair<uint64_t, std::string>> sorted;
  for (const auto& [number, count] : calls) sorted.emplace_back(count, CallName(number));
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::string text;
  uint64_t others = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i >= kShown)
      others += sorted[i].first;
    else
      text += Text(i == 0 ? "" : ", ", sorted[i].second, " ", sorted[i].first);
  }
  return others == 0 ? text : text + Text(", others ", others);
}

uint64_t Sum(const std::map<uint64_t, uint64_t>& calls) {
  uint64_t sum = 0;
  for (const auto& [number, count] : calls) sum += count;
  return sum;
}

}  // namespace

std::string RatioOfCalls(const Started& of, const Started& to) {
  if (!of.calls || !to.calls) return "-";
  return Ratio({static_cast<double>(of.calls->calls)}, {static_cast<double>(to.calls->calls)});
}

std::string Ratio(const std::vector<double>& of, const std::vector<double>& to) {
  char text[32];
  (void)std::snprintf(text, sizeof text, "%.2f", Percentile(of, 0.5) / Percentile(to, 0.5));
  return text;
}

Clock ClockHere(bool counts) {
  if (!IsEmulated()) return Clock::kTime;
  return counts ? Clock::kInstructions : Clock::kEmulated;
}

std::vector<Started> Start(const std::vector<StartRow>& rows, int rounds, Ids user) {
  std::vector<Contender> contenders;
  for (const StartRow& each : rows) contenders.push_back(each.contender);
  std::vector<Timing> timings = Compare(contenders, rounds, user);
  std::vector<Started> started;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Started one{std::move(timings[i]), {}};
    if (one.timing.failure.empty()) one.calls = CountCalls(contenders[i], user);
    started.push_back(std::move(one));
  }
  return started;
}

void PrintStartTable(const std::vector<StartRow>& rows, const std::vector<Started>& started) {
  std::printf("| | median | 95 %% | to bwrap | processor time | page faults | system calls |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (PrintFailure(rows[i], started[i], 6)) continue;
    const Timing& own = started[i].timing;
    const Timing& base = started[rows[i].baseline].timing;
    std::printf("| %s | %.1f ms | %.1f ms | %s | %.1f ms | %.0f | %s |\n",
                rows[i].contender.name.c_str(), Percentile(own.wall_us, 0.5) / kUsPerMs,
                Percentile(own.wall_us, 0.95) / kUsPerMs,
                base.failure.empty() ? Ratio(own.wall_us, base.wall_us).c_str() : "-",
                Percentile(own.cpu_us, 0.5) / kUsPerMs, Percentile(own.faults, 0.5),
                Calls(started[i]).c_str());
  }
}

void PrintEmulatedTable(const std::vector<StartRow>& rows, const std::vector<Started>& started,
                        Clock clock) {
  const char* spent = clock == Clock::kInstructions ? "instructions, the kernel's too"
                                                    : "processor time, indicative (emulated)";
  const char* unit = clock == Clock::kInstructions ? "million" : "ms";
  std::printf("| | system calls | to bwrap | %s | to bwrap | page faults | %s | to bwrap |\n",
              spent, "median time, indicative (emulated)");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (PrintFailure(rows[i], started[i], 7)) continue;
    const Timing& own = started[i].timing;
    const Started& base = started[rows[i].baseline];
    const bool comparable = base.timing.failure.empty();
    std::printf("| %s | %s | %s | %.2f %s | %s | %.0f | %.0f ms | %s |\n",
                rows[i].contender.name.c_str(), Calls(started[i]).c_str(),
                RatioOfCalls(started[i], base).c_str(), Percentile(own.cpu_us, 0.5) / kUsPerMs,
                unit, comparable ? Ratio(own.cpu_us, base.timing.cpu_us).c_str() : "-",
                Percentile(own.faults, 0.5), Percentile(own.wall_us, 0.5) / kUsPerMs,
                comparable ? Ratio(own.wall_us, base.timing.wall_us).c_str() : "-");
  }
}

void PrintBreakdown(const Contender& launch, const Started& started, Clock clock, Ids user) {
  if (!started.timing.failure.empty() || !started.calls) return;  // its row says why
  const test::CallCount& count = *started.calls;
  std::printf("\n| one launch, by the program that makes them | system calls | of these |\n");
  std::printf("|---|---|---|\n");
  for (const auto& [program, calls] : count.by_program)
    std::printf("| `%s` | %s | %s |\n", program.c_str(), Text(Sum(calls)).c_str(),
                Frequent(calls).c_str());
  std::printf("\nProcesses: %u; programs executed: %u; page faults: %.0f; ", count.processes,
              count.programs, Percentile(started.timing.faults, 0.5));
  const std::vector<double>& cpu_us = started.timing.cpu_us;
  if (clock == Clock::kInstructions) {
    const double least = Percentile(cpu_us, 0);
    std::printf("instructions, the kernel's too: %.2f million, in every round within %.1f %%.\n",
                least / kUsPerMs, (Percentile(cpu_us, 1) / least - 1) * 100);
    return;
  }
  std::optional<uint64_t> instructions = CountInstructions(launch, user);
  if (instructions)
    std::printf("instructions outside of the kernel: %s.\n", Text(*instructions).c_str());
  else
    std::printf(
        "instructions: this machine lets nobody use its processor's counter, see "
        "`./dev bench starts-v2`.\n");
}

}  // namespace taskcell::bench

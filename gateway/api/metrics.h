#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gateway/ledger/ledger.h"
#include "gateway/task/account_list.h"
#include "gateway/task/usage.h"

namespace taskcell::gateway {

inline constexpr std::size_t kMaxMetricCodes = 64;  // more count as "other"

// What the gateway has done since it began, for a program that watches it. Labels are a task's
// state and code, and the names of configured accounts: nothing that a task or a submitter chose.
class Metrics {
 public:
  // A task that ended: how long it waited, and how long it then ran (0: it never began).
  struct Ended {
    TaskState state = TaskState::kDone;
    std::string_view code;
    int64_t waited_ms = 0;
    int64_t ran_ms = 0;
  };
  // Both in any thread.
  void Count(const Ended& task, const TaskUsage& usage);

  struct Now {
    std::size_t running = 0;
    int64_t waiting = 0;
    std::vector<ListedAccount> accounts;
  };
  // Prometheus' text format, version 0.0.4.
  std::string Text(const Now& now) const;

 private:
  static constexpr std::array<int64_t, 9> kBucketsS = {1, 5, 15, 60, 300, 900, 1800, 3600, 14400};
  struct Histogram {
    std::array<uint64_t, kBucketsS.size()> below = {};  // each with those before it
    uint64_t count = 0;
    int64_t sum_ms = 0;

    void Take(int64_t ms);
    void Put(std::string_view name, std::string_view help, std::string& text) const;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, uint64_t> tasks_;  // by state and code
  Histogram waited_;
  Histogram ran_;
  TaskUsage usage_;
};

// A label's value as the format has it: backslash, quote and newline escaped; what is not UTF-8, or
// another control byte, becomes "?". Pure.
std::string LabelValue(std::string_view value);

}  // namespace taskcell::gateway

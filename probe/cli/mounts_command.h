#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::probe {

// What the command line of `taskcell-probe mounts` says.
struct MountsOptions {
  std::vector<std::string> directories;
  std::string policy = "strict";
  std::string unsafe_subtree;  // "" for the default
  std::string owner;           // a user's name or a uid; "" for the default
  std::string timeout;         // a duration as a person writes it: 10s, 2m
  uint64_t max_entries = UINT64_MAX;
  unsigned threads = 0;  // 0: one for each processor this process may use
  bool cross_mounts = false;
  bool xattrs = false;
  bool json = false;
  bool sarif = false;
  bool null_list = false;
};

inline constexpr int kExitSafe = 0;
inline constexpr int kExitFindings = 1;
// 2 and 3 as in host_command.h

// Audits the directories, prints to standard output and returns the exit status. A status of
// kExitFindings wins over kExitUnknown, what was found being certain, but not with `null_list`, and
// kExitUsage over both.
// Works in a child, which may be left behind in a file system that hangs; this process then ends by
// itself. CRITICAL: the caller must have one thread.
int MountsCommand(const MountsOptions& options);

// "250ms", "10s", "2m", "1h"; kUsage otherwise, or where it is zero or past a day. Pure.
Result<std::chrono::milliseconds> ParseDuration(const std::string& text);

}  // namespace taskcell::probe

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/component.h"
#include "probe/mounts/visitor.h"

namespace taskcell::probe::audit {

// Past it a tree in the cache is walked no faster, and memory would pass 16 MiB.
inline constexpr unsigned kMaxThreads = 8;

struct WalkOptions {
  unsigned threads = 1;  // 1 to kMaxThreads
  uint64_t max_entries = UINT64_MAX;
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  std::chrono::milliseconds entry_timeout{5000};  // how long one entry may take
  mounts::Crossing crossing = mounts::Crossing::kNever;
  std::function<void(uint64_t entries)> progress = {};  // called now and then
};

struct WalkResult {
  uint64_t entries = 0;
  // A thread hangs in the kernel and was left behind; it may wake and call the visitor at any time.
  // CRITICAL: the process must end by _exit(2), not through exit handlers.
  bool abandoned = false;
};

// Reads the directory `root` (open for reading; "" is its path, or `path` where that is given) and
// all that is below it, and has everything met judged by `visitor`. Links are never followed,
// nothing but directories is ever opened, other mounts are entered only where that is allowed. A
// bound that was passed is told to the visitor. The number of descriptors and the memory are
// bounded, whatever the tree.
Result<WalkResult> Walk(UniqueFd root, const std::string& path,
                        const std::shared_ptr<Visitor>& visitor, const WalkOptions& options);

}  // namespace taskcell::probe::audit

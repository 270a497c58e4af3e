#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/unique_fd.h"

namespace taskcell::probe::audit {

// What a directory must still be when it is met again.
struct Identity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t mount = 0;
  int64_t changed_s = 0;
  uint32_t changed_ns = 0;
};

// A directory above another, and nothing of how it is mounted: what shows it again is it.
struct Ancestor {
  uint64_t device = 0;
  uint64_t inode = 0;
};

// A directory whose entries are to be read, with all that is below.
struct Task {
  UniqueFd fd;
  std::string path;  // below the directory audited; "" for itself
  unsigned depth = 0;
  bool fine = true;
  Identity identity = {};
  // Those above it, from the one audited down; only where other mounts are entered.
  std::vector<Ancestor> above = {};
};

// Hands directories from the workers that find them to those that have none.
class Pool {
 public:
  explicit Pool(unsigned workers) : workers_(workers) {}

  // True when a directory more would be welcome. A hint: reads without the lock.
  bool wants() const {
    return workers_ > 1 && queued_.load(std::memory_order_relaxed) < kQueuedPerWorker * workers_;
  }
  void Give(Task task);

  // Waits for a task; none when all workers wait or the walk was stopped: then it is over.
  std::optional<Task> Take();
  void Stop();

 private:
  static constexpr unsigned kQueuedPerWorker = 4;

  const unsigned workers_;
  std::atomic<unsigned> queued_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  unsigned waiting_ = 0;
  bool over_ = false;
};

}  // namespace taskcell::probe::audit

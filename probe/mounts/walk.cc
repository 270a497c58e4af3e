#include "probe/mounts/walk.h"

#include <fcntl.h>
#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/self.h"
#include "probe/mounts/worker.h"

namespace taskcell::probe::audit {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kLook{100};   // how often the workers are looked after
constexpr std::chrono::milliseconds kGrace{500};  // for the entry at hand, once the time is up

// Network file systems that answer from a cache unless they are asked not to. What is mounted below
// such a directory could hang anyway; below others it shall not.
bool AsksItsServer(uint64_t type) {
  constexpr uint64_t kCifs = 0xFF534D42;
  constexpr std::array<uint64_t, 6> kTypes = {NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,  SMB2_SUPER_MAGIC,
                                              V9FS_MAGIC,      CEPH_SUPER_MAGIC, kCifs};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

// Everything a worker touches: outlives a worker that was left behind.
struct Walking {
  Walking(const WalkOptions& the_options, std::shared_ptr<Visitor> the_visitor)
      : options(the_options), visitor(std::move(the_visitor)), state(options.threads, *visitor) {}

  const WalkOptions options;
  const std::shared_ptr<Visitor> visitor;
  WalkState state;
  std::vector<std::unique_ptr<Worker>> workers;
  std::mutex mutex;
  std::condition_variable ended;
  unsigned running = 0;
};

// Looks after the workers from outside.
class Supervisor {
 public:
  explicit Supervisor(Walking& walking)
      : walking_(walking), seen_(walking.workers.size(), {0, Clock::now(), false}) {}

  // To be called once before the workers begin: for a time that was up from the start.
  void Begin() { (void)Look(); }

  // Waits until the workers have ended; false when some of them never will.
  bool Wait() {
    std::unique_lock lock(walking_.mutex);
    auto all_ended = [this] { return walking_.running == 0; };
    while (!walking_.ended.wait_for(lock, kLook, all_ended)) {
      lock.unlock();
      bool hopeless = Look();
      lock.lock();
      if (hopeless && walking_.running > 0) return false;
    }
    return true;
  }

 private:
  struct Seen {
    uint64_t steps;
    Clock::time_point since;
    bool hangs;
  };

  // True when all workers that still have work hang.
  bool Look() {
    Clock::time_point now = Clock::now();
    WalkState& state = walking_.state;
    if (walking_.options.progress)
      walking_.options.progress(state.entries.load(std::memory_order_relaxed));
    if (now >= walking_.options.deadline && !timed_out_) {
      timed_out_ = true;
      state.stopped = true;
      state.pool.Stop();
      walking_.visitor->Miss(Code::kTimeout, "", "not all of it was looked at");
    }
    std::size_t busy = 0;
    std::size_t hanging = 0;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      if (!walking_.workers[i]->busy()) continue;
      ++busy;
      if (LookAt(*walking_.workers[i], seen_[i], now)) ++hanging;
    }
    return busy > 0 && busy == hanging;
  }

  bool LookAt(const Worker& worker, Seen& seen, Clock::time_point now) {
    uint64_t steps = worker.steps();
    if (steps != seen.steps) seen = {steps, now, false};
    auto patience = walking_.options.entry_timeout;
    if (timed_out_) patience = std::min(patience, kGrace);
    if (now - seen.since < patience) return false;
    if (!seen.hangs) {
      seen.hangs = true;
      walking_.visitor->Miss(
          Code::kHangs, worker.Place(),
          Text("something in it did not answer within ",
               std::chrono::duration_cast<std::chrono::milliseconds>(walking_.options.entry_timeout)
                   .count(),
               " ms"));
    }
    return true;
  }

  Walking& walking_;
  std::vector<Seen> seen_;
  bool timed_out_ = false;
};

void RunWorker(const std::shared_ptr<Walking>& walking, Worker& worker) {
  worker.Run();
  std::scoped_lock lock(walking->mutex);
  --walking->running;
  walking->ended.notify_all();
}

}  // namespace

Result<WalkResult> Walk(UniqueFd root, const std::string& path,
                        const std::shared_ptr<Visitor>& visitor, const WalkOptions& options) {
  auto walking = std::make_shared<Walking>(options, visitor);
  WalkState& state = walking->state;
  state.crossing = options.crossing;
  state.max_entries = options.max_entries;
  state.sync = AsksItsServer(TRY(sys::FileSystemOf(root.get())).type) ? 0 : AT_STATX_DONT_SYNC;
  struct statx info;
  TRY(sys::StatEntry(root.get(), "", state.sync, info));
  if ((info.stx_mask & STATX_MNT_ID) == 0)
    return Error(Kind::kUnsupported, "statx(2) does not tell mounts apart here: needs Linux 5.8");
  state.mount = info.stx_mnt_id;
  state.pool.Give({std::move(root), path, 0, true, IdentityOf(info)});
  for (unsigned i = 0; i < options.threads; ++i)
    walking->workers.push_back(std::make_unique<Worker>(state, i));
  walking->running = options.threads;
  Supervisor supervisor(*walking);
  supervisor.Begin();
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Worker>& worker : walking->workers)
    threads.emplace_back([walking, &worker = *worker] { RunWorker(walking, worker); });
  bool ended = supervisor.Wait();
  for (std::thread& thread : threads) {
    if (ended)
      thread.join();
    else
      thread.detach();
  }
  if (state.too_many) visitor->Miss(Code::kTooMany, path, "not all of it was looked at");
  return WalkResult{state.entries.load(), !ended};
}

}  // namespace taskcell::probe::audit

#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "launcher/mounts/component.h"
#include "probe/mounts/pool.h"
#include "probe/mounts/visitor.h"

namespace taskcell::probe::audit {

// The deepest directory that is entered, and the longest path of one: each level takes some 64
// bytes and its name, of each thread.
inline constexpr unsigned kMaxDepth = 4096;
inline constexpr std::size_t kMaxPathBytes = 64U << 10U;

// What the workers of one walk share.
struct WalkState {
  WalkState(unsigned workers, Visitor& the_visitor) : pool(workers), visitor(the_visitor) {}

  Pool pool;
  Visitor& visitor;
  mounts::Crossing crossing = mounts::Crossing::kNever;
  int sync = 0;        // for sys::StatEntry
  uint64_t mount = 0;  // where the walk begins
  uint64_t max_entries = UINT64_MAX;
  std::atomic<uint64_t> entries = 0;
  std::atomic<bool> too_many = false;
  std::atomic<bool> stopped = false;
};

// Walks the directories it takes from the pool, depth first. Holds at most kSlots descriptors and
// buffers, however deep the tree: a directory whose slot was taken by a deeper one is opened again
// from there by "..", and must be the same then.
class Worker : private Whereabouts {
 public:
  Worker(WalkState& state, unsigned number) : state_(state), number_(number) {}

  // Works until the walk is over.
  void Run();

  // For another thread that wonders whether this one hangs. `steps` changes with every entry;
  // `Place` is the entry's directory.
  uint64_t steps() const { return steps_.load(std::memory_order_relaxed); }
  bool busy() const { return busy_.load(std::memory_order_relaxed); }
  std::string Place() const;

 private:
  static constexpr std::size_t kSlots = 8;
  static constexpr std::size_t kBufferBytes = 16384;
  static constexpr std::size_t kNobody = SIZE_MAX;

  struct Slot {
    std::size_t owner = kNobody;  // the index of its frame
    UniqueFd fd;
    std::unique_ptr<char[]> records;
    std::size_t at = 0;
    std::size_t end = 0;
  };
  struct Frame {
    Identity identity;
    int64_t offset = 0;  // d_off of the last entry met
    uint32_t path_bytes = 0;
    bool fine = true;
  };

  std::string Directory() const override { return path_; }
  Slot& SlotOf(std::size_t frame) { return slots_[frame % kSlots]; }
  void Begin(Task task);
  void Walk();
  void Push(UniqueFd fd, std::string_view name, const Identity& identity, bool fine);
  bool Refill(Slot& slot);
  void MeetEntry(int dir_fd, const char* name);
  void EnterDirectory(int dir_fd, const char* name, const struct statx& info, bool fine);
  void Leave();
  void CheckUnchanged(int fd);
  bool Reopen(int child_fd);
  bool IsAbove(const struct statx& info) const;
  bool HandOver(UniqueFd& fd, const char* name, const struct statx& info, bool fine);
  std::vector<Ancestor> Above() const;
  bool CountEntry();
  void FlushCount();

  WalkState& state_;
  const unsigned number_;
  std::array<Slot, kSlots> slots_;
  std::deque<Frame> frames_;  // no vector, which takes up to three times as much while it grows
  std::string path_;          // of the directory on top
  unsigned base_depth_ = 0;
  std::vector<Ancestor> base_above_;  // of the task
  unsigned uncounted_ = 0;
  mutable std::mutex path_mutex_;  // path_, for Place
  std::atomic<uint64_t> steps_ = 0;
  std::atomic<bool> busy_ = false;
};

Identity IdentityOf(const struct statx& info);
bool IsSameInode(const Identity& a, const Identity& b);
bool IsUnchanged(const Identity& a, const Identity& b);

}  // namespace taskcell::probe::audit

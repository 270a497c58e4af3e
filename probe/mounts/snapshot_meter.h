#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "launcher/mounts/snapshot.h"
#include "probe/mounts/visitor.h"

namespace taskcell::probe::audit {

// Measures what an audit meets against what a snapshot may hold. On several threads at once.
class SnapshotMeter {
 public:
  explicit SnapshotMeter(const mounts::SnapshotBounds& bounds = {}) : bounds_(bounds) {}

  // Every entry in SKILLS and wiki is looked at, left out or not.
  void Look() { ++looked_at_; }
  // Such an entry that is copied.
  void Count(const Met& met);
  void Count(uint64_t bytes);  // one file of that size

  // Whether symbolic links were among what was counted.
  bool has_links() const { return has_links_; }

  // Which bound was passed; empty: none.
  std::string Excess() const;

  // What was counted so far, to return to it: what is left out takes no room.
  struct Mark {
    uint64_t bytes;
    uint64_t entries;
    uint64_t looked_at;
  };
  Mark Now() const { return {bytes_, entries_, looked_at_}; }
  void ReturnTo(const Mark& mark);

 private:
  const mounts::SnapshotBounds bounds_;
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<uint64_t> entries_ = 0;
  std::atomic<uint64_t> looked_at_ = 0;
  std::atomic<bool> is_too_deep_ = false;
  std::atomic<bool> has_links_ = false;
};

}  // namespace taskcell::probe::audit

#pragma once

#include <linux/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "launcher/mounts/link_table.h"
#include "probe/mounts/findings.h"

namespace taskcell::probe::audit {

// More linked inodes than this whose sets are still open: their sets are not resolved.
inline constexpr std::size_t kMaxLinkedInodes = 500'000;

// The files with more than one name that a walk met: after it, which of them have a name elsewhere.
class LinkSets {
 public:
  // Another bound is for tests.
  explicit LinkSets(uint64_t seed, std::size_t max_inodes = kMaxLinkedInodes);

  // Takes note of a file with at least two links; `path` is called only where it is kept.
  template <typename PathOf>
  void Meet(const struct statx& info, const PathOf& path) {
    uint64_t key = Count(info);
    if (files_are_over_) return;
    Keep(key, path(), info.stx_nlink);
  }

  // More inodes than the bound were open at a time: no set is resolved then.
  bool is_over() const { return is_over_; }
  uint64_t names() const { return names_; }

  // Another walk may meet files that the first did not come to: no set is resolved.
  void GiveUp() { is_over_ = true; }

  // True when more files were met than were kept: then only a second walk can name them all, by
  // AddFinding for each.
  bool needs_second_walk() const { return files_are_over_ && names_ > 0; }
  // Adds the findings of all files that were kept.
  void AddFindings(FindingList& list);
  // Adds what there is to say about one file, now that all were met.
  void AddFinding(const struct statx& info, std::string path, FindingList& list) const;

 private:
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kUneven = 1024;  // what a shard may get more than its share
  static constexpr std::size_t kMaxKept = 3000;
  static constexpr std::size_t kMaxKeptBytes = 256U << 10U;

  struct Shard {
    explicit Shard(std::size_t max) : table(max) {}
    mutable std::mutex mutex;
    mounts::LinkTable table;
  };
  struct Kept {
    uint64_t key;
    uint32_t links;
    std::string path;
  };
  uint64_t KeyOf(const struct statx& info) const;
  uint64_t Count(const struct statx& info);
  void Keep(uint64_t key, std::string path, uint32_t links);
  void Judge(uint64_t key, std::string path, uint32_t links, FindingList& list) const;

  const uint64_t seed_;
  const std::size_t max_inodes_;
  std::atomic<std::size_t> open_inodes_ = 0;
  std::atomic<bool> is_over_ = false;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::atomic<uint64_t> names_ = 0;
  std::atomic<bool> files_are_over_ = false;
  std::mutex kept_mutex_;
  std::vector<Kept> kept_;
  std::size_t kept_bytes_ = 0;
};

}  // namespace taskcell::probe::audit

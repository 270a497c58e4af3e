#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace taskcell::mounts {

// Which sets of hard links lie whole within a tree: counts the names met of each linked inode, and
// forgets an inode once all its names were met. Takes 9 bytes for each of `max_inodes`, touched
// only as far as it is used. It keeps 44 bits of the keys, so that two inodes are taken for one in
// one of 10,000 trees with 500,000 linked inodes.
class LinkTable {
 public:
  explicit LinkTable(std::size_t max_inodes);

  // Counts one more name of the inode `key`, which has `links` (at least 2) names in all.
  void Meet(uint64_t key, uint32_t links);

  // True when fewer names were met than there are, or names were met past the bound.
  bool IsOpen(uint64_t key) const;

  // True when more than `max_inodes` inodes were open at a time: then nothing is known of those
  // that came after.
  bool is_over() const { return is_over_; }
  std::size_t open_inodes() const { return used_; }

 private:
  // The upper 44 bits of the key, and the number of names not met yet; 0: free.
  using Slot = uint64_t;
  static constexpr uint64_t kLeftMask = (uint64_t{1} << 20U) - 1;
  std::size_t HomeOf(uint64_t key) const;
  std::size_t Find(uint64_t key) const;  // its slot, or the free one where it belongs
  std::size_t Behind(std::size_t at) const { return at + 1 == size_ ? 0 : at + 1; }
  void Free(std::size_t at);

  struct Release {
    void operator()(Slot* slots) const { std::free(slots); }
  };
  const std::size_t max_inodes_;
  const std::size_t size_;
  std::unique_ptr<Slot[], Release> slots_;  // made with the first inode
  std::size_t used_ = 0;
  bool is_over_ = false;
};

// One number for an inode, whatever its device: `seed` is random, so that nobody can choose inodes
// that are taken for one another.
uint64_t LinkKey(uint64_t device, uint64_t inode, uint64_t seed);

}  // namespace taskcell::mounts

#include "launcher/mounts/link_table.h"

#include <utility>

namespace taskcell::mounts {
namespace {

// The finalizer of splitmix64: every bit of the input changes half of the output's.
uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

}  // namespace

uint64_t LinkKey(uint64_t device, uint64_t inode, uint64_t seed) {
  return Mix(inode + Mix(device + seed));
}

LinkTable::LinkTable(std::size_t max_inodes)
    : max_inodes_(max_inodes), size_(max_inodes + max_inodes / 8 + 1) {}

std::size_t LinkTable::HomeOf(uint64_t key) const {
  // Multiply and shift, since the size is no power of two.
  return ((key >> 32U) * size_) >> 32U;
}

std::size_t LinkTable::Find(uint64_t key) const {
  std::size_t at = HomeOf(key);
  while (slots_[at] != 0 && ((slots_[at] ^ key) & ~kLeftMask) != 0) at = Behind(at);
  return at;
}

// Knuth, volume 3, section 6.4, algorithm R: what stands behind a freed slot moves up.
void LinkTable::Free(std::size_t at) {
  slots_[at] = 0;
  --used_;
  std::size_t hole = at;
  for (std::size_t next = Behind(at); slots_[next] != 0; next = Behind(next)) {
    std::size_t home = HomeOf(slots_[next]);
    bool stays = hole <= next ? hole < home && home <= next : hole < home || home <= next;
    if (stays) continue;
    slots_[hole] = std::exchange(slots_[next], 0);
    hole = next;
  }
}

void LinkTable::Meet(uint64_t key, uint32_t links) {
  // calloc, not a vector: large, and pages that are not used are never touched.
  if (slots_ == nullptr) slots_.reset(static_cast<Slot*>(std::calloc(size_, sizeof(Slot))));
  if (slots_ == nullptr) {
    is_over_ = true;
    return;
  }
  std::size_t at = Find(key);
  if (slots_[at] == 0) {
    if (used_ == max_inodes_ || links > kLeftMask) {
      is_over_ = true;
      return;
    }
    slots_[at] = (key & ~kLeftMask) | (links - 1);
    ++used_;
    return;
  }
  --slots_[at];
  if ((slots_[at] & kLeftMask) == 0) Free(at);
}

bool LinkTable::IsOpen(uint64_t key) const {
  return is_over_ || (slots_ != nullptr && slots_[Find(key)] != 0);
}

}  // namespace taskcell::mounts

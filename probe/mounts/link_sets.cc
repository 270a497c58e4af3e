#include "probe/mounts/link_sets.h"

#include "launcher/base/text.h"
#include "launcher/sys/entry.h"

namespace taskcell::probe::audit {

LinkSets::LinkSets(uint64_t seed, std::size_t max_inodes) : seed_(seed), max_inodes_(max_inodes) {
  // A random key spreads inodes over the shards. Few would be spread too unevenly.
  const bool many = max_inodes >= kShards * kUneven;
  const std::size_t each = many ? max_inodes / kShards + kUneven : max_inodes + 1;
  for (std::size_t i = 0; i < (many ? kShards : 1); ++i)
    shards_.push_back(std::make_unique<Shard>(each));
}

uint64_t LinkSets::KeyOf(const struct statx& info) const {
  return mounts::LinkKey(sys::DeviceOf(info), info.stx_ino, seed_);
}

uint64_t LinkSets::Count(const struct statx& info) {
  uint64_t key = KeyOf(info);
  Shard& shard = *shards_[key % shards_.size()];
  names_.fetch_add(1, std::memory_order_relaxed);
  std::scoped_lock lock(shard.mutex);
  const std::size_t before = shard.table.open_inodes();
  shard.table.Meet(key, info.stx_nlink);
  // Modulo the size of the type where it is one less.
  const std::size_t open = open_inodes_ += shard.table.open_inodes() - before;
  if (open > max_inodes_ || shard.table.is_over()) is_over_ = true;
  return key;
}

void LinkSets::Keep(uint64_t key, std::string path, uint32_t links) {
  std::scoped_lock lock(kept_mutex_);
  kept_bytes_ += path.size();
  if (kept_.size() == kMaxKept || kept_bytes_ > kMaxKeptBytes) {
    files_are_over_ = true;
    kept_ = {};
    return;
  }
  kept_.push_back({key, links, std::move(path)});
}

void LinkSets::Judge(uint64_t key, std::string path, uint32_t links, FindingList& list) const {
  const Shard& shard = *shards_[key % shards_.size()];
  std::unique_lock lock(shard.mutex);
  bool open = shard.table.IsOpen(key);
  lock.unlock();
  if (is_over_)
    list.Add(Code::kHardLinkUnresolved, std::move(path),
             Text(links, " links; link set not resolved"));
  else if (open)
    list.Add(Code::kHardLinkLeaves, std::move(path),
             Text(links, " links, of which fewer are in this directory"));
  else
    list.Add(Code::kHardLinkClosed, std::move(path),
             Text(links, " links, all of them in this directory"));
}

void LinkSets::AddFindings(FindingList& list) {
  std::scoped_lock lock(kept_mutex_);
  for (Kept& kept : kept_) Judge(kept.key, std::move(kept.path), kept.links, list);
  kept_ = {};
}

void LinkSets::AddFinding(const struct statx& info, std::string path, FindingList& list) const {
  Judge(KeyOf(info), std::move(path), info.stx_nlink, list);
}

}  // namespace taskcell::probe::audit

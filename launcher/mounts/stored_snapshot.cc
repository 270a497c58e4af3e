#include "launcher/mounts/stored_snapshot.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/mounts/component.h"
#include "launcher/mounts/inventory.h"
#include "launcher/mounts/settled.h"
#include "launcher/mounts/snapshot_record.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "launcher/sys/inode_time.h"
#include "launcher/sys/random.h"

namespace taskcell::mounts {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY;
constexpr std::size_t kMaxStoreEntries = 10'000;
constexpr char kTree[] = "tree";
constexpr char kRecord[] = "record";
constexpr char kUnfinishedRecord[] = "record.new";
constexpr char kYes = '+';
constexpr char kNo = '-';
// Less than the margin of SettledBefore(): setting the clock back by that much leads to no time
// that anything in an inventory was changed at.
constexpr int64_t kClockSlackMs = 50;

// The first part of a stored snapshot's name: the agent directory, and what is done with unsafe
// things in it. Only narrows the search: the record decides.
Result<std::string> KeyOf(int agent_dir_fd, Subtree subtree) {
  struct stat info = TRY(sys::Stat(agent_dir_fd));
  return Text(info.st_dev, ".", info.st_ino, subtree == Subtree::kSkip ? ".skip" : ".prune");
}

Result<std::string> NewName(const std::string& key) {
  std::array<unsigned char, sizeof(uint64_t)> bytes;
  TRY(sys::FillRandom(bytes));
  std::string name = key + "-";
  for (unsigned char byte : bytes) name += std::to_string(byte) + ".";
  return name;
}

bool IsOf(const std::string& name, const std::string& key) { return name.starts_with(key + "-"); }

bool IsSame(const SnapshotBounds& a, const SnapshotBounds& b) {
  return a.bytes == b.bytes && a.entries == b.entries && a.depth == b.depth;
}

// What somebody may remove, since nobody uses it.
struct Idle {
  std::string name;
  UniqueFd lock;
  struct timespec used = {};
};

}  // namespace

struct StoredSnapshot::Source {
  int agent_dir_fd;
  Subtree subtree;
  SnapshotBounds bounds;
};

// What was known before anything was copied.
struct StoredSnapshot::Before {
  int64_t clock_offset_ms;
  struct timespec settled;
  std::optional<Inventory> inventory;
};

// Nobody removes what is locked. False when somebody is just about to, or already did.
Result<bool> StoredSnapshot::Lock(const std::string& name) {
  Result<UniqueFd> opened = OpenComponent(store_.get(), name, kDirectory);
  if (!opened.ok() || !sys::LockNamed(opened->get(), LOCK_SH, store_.get(), name)) return false;
  directory_ = std::move(opened).value();
  name_ = name;
  return true;
}

Result<bool> StoredSnapshot::Reuse(const std::string& name, const std::string& inventory,
                                   const SnapshotBounds& bounds) {
  if (!TRY(Lock(name))) return false;
  Result<UniqueFd> file = OpenComponent(directory_.get(), kRecord, O_RDONLY);
  if (!file.ok()) return false;
  Result<std::string> bytes = sys::ReadAll(file->get(), kMaxRecordBytes);
  if (!bytes.ok()) return false;
  Result<SnapshotRecord> record = ParseRecord(bytes.value());
  if (!record.ok()) return false;
  bool holds = record->boot_id == TRY(BootId()) &&
               sys::ClockOffsetMs() >= record->clock_offset_ms - kClockSlackMs &&
               IsSame(record->bounds, bounds) && record->inventory == inventory;
  if (!holds) return false;
  tree_ = TRY(OpenComponent(directory_.get(), kTree, kDirectory));
  content_ = std::move(record->snapshot);
  has_record_ = true;
  is_reused_ = true;
  TRY(sys::SetModifiedNow(directory_.get()));
  return true;
}

Status StoredSnapshot::Make(const std::string& key) {
  constexpr int kTries = 8;  // somebody who tidies up may take a new one for a leftover
  for (int tries = 0; tries < kTries; ++tries) {
    std::string name = TRY(NewName(key));
    TRY(sys::MakeDirectory(store_.get(), name, 0700));
    if (!TRY(Lock(name))) continue;
    TRY(sys::MakeDirectory(directory_.get(), kTree, 0700));
    tree_ = TRY(OpenComponent(directory_.get(), kTree, kDirectory));
    return Ok();
  }
  return Error(Kind::kSystem, "a new snapshot was removed by somebody else each time");
}

Status StoredSnapshot::Copy(const Source& source, const Before& before) {
  auto [agent_dir_fd, subtree, bounds] = source;
  content_ = TRY(SnapshotAgentDirectory(agent_dir_fd, tree_.get(), subtree, bounds));
  // Whatever was changed since then has another inventory from now on: nobody will take this copy
  // for one of it.
  const std::optional<Inventory>& was = before.inventory;
  struct timespec settled = before.settled;
  if (!content_.all_leased) settled.tv_sec -= bounds.longest_write_s;
  if (!was || !IsEarlier(was->newest, settled) || !content_.repeatable) return Ok();
  SnapshotRecord record;
  record.boot_id = TRY(BootId());
  record.clock_offset_ms = before.clock_offset_ms;
  record.bounds = bounds;
  record.inventory = was->text;
  record.snapshot = content_;
  UniqueFd file = TRY(
      sys::OpenNoFollow(directory_.get(), kUnfinishedRecord, O_WRONLY | O_CREAT | O_EXCL, 0600));
  const std::string bytes = TRY(EncodeRecord(record));
  TRY(sys::WriteAll(file.get(), bytes));
  TRY(sys::Rename(directory_.get(), kUnfinishedRecord, kRecord));
  has_record_ = true;
  return Ok();
}

// Whatever cannot be removed now stays for the next one who comes by.
void StoredSnapshot::RemoveOthers(const std::string& key) const {
  Result<std::vector<sys::DirectoryEntry>> entries =
      sys::ListDirectory(store_.get(), kMaxStoreEntries);
  if (!entries.ok()) return;
  std::vector<Idle> idle;
  for (const sys::DirectoryEntry& entry : entries.value()) {
    if (entry.name == name_) continue;
    Result<UniqueFd> lock = OpenComponent(store_.get(), entry.name, kDirectory);
    if (!lock.ok() || !sys::Lock(lock->get(), LOCK_EX | LOCK_NB).ok()) continue;
    Result<struct stat> info = sys::Stat(lock->get());
    if (!info.ok()) continue;
    bool unfinished = !sys::StatAt(lock->get(), kRecord).ok();
    struct timespec used = info->st_mtim;
    if (unfinished || IsOf(entry.name, key)) used = {};
    idle.push_back({entry.name, std::move(lock).value(), used});
  }
  std::sort(idle.begin(), idle.end(),
            [](const Idle& a, const Idle& b) { return IsEarlier(b.used, a.used); });
  struct timespec oldest = sys::InodeClock();
  oldest.tv_sec -= kMaxUnusedSeconds;
  for (std::size_t i = 0; i < idle.size(); ++i) {
    if (i < kMaxStoredSnapshots && !IsEarlier(idle[i].used, oldest)) continue;
    (void)RemoveTree(store_.get(), idle[i].name);  // ignoring: see above
  }
}

Result<StoredSnapshot> StoredSnapshot::Take(const SnapshotStore& store, int agent_dir_fd,
                                            Subtree subtree, const SnapshotBounds& bounds) {
  StoredSnapshot taken;
  taken.store_ = TRY(sys::Duplicate(store.fd));
  taken.store_path_ = store.path;
  const std::string key = TRY(KeyOf(agent_dir_fd, subtree));
  Before before{sys::ClockOffsetMs(), SettledBefore(), std::nullopt};
  before.inventory = TRY(TakeInventory(agent_dir_fd, bounds.entries, bounds.depth));
  // By times of another clock nobody can tell that nothing was changed. Not before the walk: where
  // it hangs, nothing was made yet.
  if (HasForeignTimes(agent_dir_fd)) before.inventory.reset();
  if (before.inventory) {
    for (const sys::DirectoryEntry& entry :
         TRY(sys::ListDirectory(taken.store_.get(), kMaxStoreEntries))) {
      if (!IsOf(entry.name, key)) continue;
      if (TRY(taken.Reuse(entry.name, before.inventory->text, bounds))) {
        taken.RemoveOthers(key);
        return taken;
      }
      taken.directory_.Reset();  // not ours to remove
    }
  }
  (void)sys::SpreadDirectories(taken.store_.get());  // ignoring: it only makes copying faster
  TRY(taken.Make(key));
  taken.RemoveOthers(key);
  TRY(taken.Copy({agent_dir_fd, subtree, bounds}, before));
  return taken;
}

void StoredSnapshot::Tidy(int store_fd) {
  StoredSnapshot none;
  Result<UniqueFd> store = sys::Duplicate(store_fd);
  if (!store.ok()) return;
  none.store_ = std::move(store).value();
  none.RemoveOthers("");
}

Result<WorkResult> StoredSnapshot::Parts() const {
  SnapshotRecord record;
  record.snapshot = content_;
  WorkResult parts;
  parts.bytes = Text(is_reused_ ? kYes : kNo, has_record_ ? kYes : kNo, name_, '\n');
  parts.bytes += TRY(EncodeRecord(record));
  parts.passed.push_back(TRY(sys::Duplicate(directory_.get())));
  parts.passed.push_back(TRY(sys::Duplicate(tree_.get())));
  return parts;
}

Result<StoredSnapshot> StoredSnapshot::FromParts(const SnapshotStore& store, WorkResult parts) {
  const std::string_view bytes = parts.bytes;
  const std::size_t line = bytes.find('\n');
  if (parts.passed.size() != 2 || line == bytes.npos || line < 2)
    return Error(Kind::kInternal, "the parts of a snapshot came incomplete");
  StoredSnapshot taken;
  taken.content_ = std::move(TRY(ParseRecord(bytes.substr(line + 1))).snapshot);
  taken.store_ = TRY(sys::Duplicate(store.fd));
  taken.store_path_ = store.path;
  taken.is_reused_ = bytes[0] == kYes;
  taken.has_record_ = bytes[1] == kYes;
  taken.name_ = bytes.substr(2, line - 2);
  taken.directory_ = std::move(parts.passed[0]);
  taken.tree_ = std::move(parts.passed[1]);
  return taken;
}

std::string StoredSnapshot::path() const { return Text(store_path_, "/", name_, "/", kTree); }

StoredSnapshot::~StoredSnapshot() {
  (void)Release(false);  // ignoring: whoever cares has called it; the next one here removes it
}

Status StoredSnapshot::Release(bool keep) {
  if (!directory_.valid()) return Ok();
  UniqueFd directory = std::move(directory_);
  tree_.Reset();
  if (is_reused_ || (keep && has_record_)) return Ok();
  // Others that came to use it, by its record, hold a lock too.
  if (!sys::Lock(directory.get(), LOCK_EX | LOCK_NB).ok()) return Ok();
  return RemoveTree(store_.get(), name_);
}

}  // namespace taskcell::mounts

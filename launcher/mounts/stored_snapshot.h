#pragma once

#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/child_work.h"
#include "launcher/mounts/snapshot.h"

namespace taskcell::mounts {

// Of all that no run uses, this many snapshots stay, none of which was unused for longer.
inline constexpr std::size_t kMaxStoredSnapshots = 16;
inline constexpr int64_t kMaxUnusedSeconds = int64_t{7} * 24 * 3600;

// Where snapshots are stored: a directory (0700) of this user in which nothing else is.
struct SnapshotStore {
  int fd = -1;
  std::string path;  // canonical
};

// A snapshot of an agent directory on disk, in use as long as this object lives. The same directory
// unchanged (TakeInventory) is not copied again: whoever takes it next uses the same copy, which
// nobody ever changes. A copy becomes usable to others by the record that is put beside it last, so
// that one that was interrupted never does, nor one of a directory that was changed just before
// (SettledBefore, LatestOf; where a file grants no lease, kLongestWriteSeconds), nor one with a
// file in it that was open for writing, nor one on a file system of a process or another host, nor
// one from before a reboot or before the clock was set back. One that was changed meanwhile never
// has the recorded inventory again.
class StoredSnapshot {
 public:
  // Finds or makes the snapshot and removes what is of no use in the store any more. Errors as
  // SnapshotAgentDirectory's; nothing is left after one.
  static Result<StoredSnapshot> Take(const SnapshotStore& store, int agent_dir_fd, Subtree subtree,
                                     const SnapshotBounds& bounds = {});

  // Removes what is of no use in the store any more.
  static void Tidy(int store_fd);

  // What another process needs to use it as this one does, and that use there. The lock that says
  // that it is in use goes along.
  Result<WorkResult> Parts() const;
  static Result<StoredSnapshot> FromParts(const SnapshotStore& store, WorkResult parts);

  StoredSnapshot(StoredSnapshot&&) noexcept = default;
  StoredSnapshot& operator=(StoredSnapshot&&) = delete;
  ~StoredSnapshot();

  const Snapshot& content() const { return content_; }
  int fd() const { return tree_.get(); }
  std::string path() const;  // canonical
  bool is_reused() const { return is_reused_; }

  // Ends the use. With `keep` a copy that others can use stays for them; any other that was made
  // here goes, unless somebody uses it.
  Status Release(bool keep);

 private:
  struct Source;
  struct Before;
  StoredSnapshot() = default;

  Result<bool> Reuse(const std::string& name, const std::string& inventory,
                     const SnapshotBounds& bounds);
  Status Make(const std::string& key);
  Status Copy(const Source& source, const Before& before);
  Result<bool> Lock(const std::string& name);
  void RemoveOthers(const std::string& key) const;

  UniqueFd store_;
  std::string store_path_;
  std::string name_;
  UniqueFd directory_;  // locked while in use
  UniqueFd tree_;
  Snapshot content_;
  bool is_reused_ = false;
  bool has_record_ = false;
};

}  // namespace taskcell::mounts

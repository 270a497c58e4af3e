#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/native/host_root.h"

namespace taskcell::native {

// The cell's new root: attached over the old one, not yet pivoted into.
class CellRoot {
 public:
  // RootKind::kHost: a small private tmpfs with the host's pieces on it.
  static Result<CellRoot> FromHost(HostRoot host);
  // RootKind::kRootfs: the directory itself, read-only. Nothing is ever made in it.
  static Result<CellRoot> FromDirectory(MountSource directory);

  int fd() const { return fd_.get(); }

  // Attaches a detached mount at the absolute path `target`, which is made where the root is ours
  // and it is missing. CRITICAL: no symbolic link is ever followed on the way, so an image cannot
  // redirect a mount; a target that is one, or is reached through one, is refused by name. So is
  // one that would cover a mount the host root consists of. `writable_source` is the host's name of
  // what the tree shows where it can be written to: nothing is ever made in it.
  Status Attach(const std::string& target, cell::EntryKind kind, int tree,
                const std::string& writable_source = {});

  // Opens `target` (O_PATH), making it where that is allowed.
  Result<UniqueFd> OpenTarget(const std::string& target, cell::EntryKind kind);

  // Makes a tmpfs and attaches it.
  Status AttachTmpfs(const cell::PlannedTmpfs& tmpfs);

  // Last step: a tmpfs root becomes read-only. A directory root is so from the start.
  Status Seal();

 private:
  CellRoot(UniqueFd fd, bool may_create) : fd_(std::move(fd)), may_create_(may_create) {}
  Status Make(const std::string& path, cell::EntryKind kind);
  Status CheckMayMake(const std::string& target) const;

  struct Attached {
    std::string target;
    std::string writable_source;
  };

  UniqueFd fd_;
  bool may_create_;
  std::vector<std::string> own_mounts_;  // where pieces of the host are
  std::vector<Attached> attached_;
};

// Makes all missing directories on the way to `path` (relative to `dir_fd`, no links followed) and
// returns its parent.
Result<UniqueFd> MakeParents(int dir_fd, std::string_view path);

// Makes new files and links below one directory, parents made. Keeps the last parent open: most
// entries lie in the directory of the one before.
class EntryMaker {
 public:
  explicit EntryMaker(int dir_fd) : dir_fd_(dir_fd) {}

  // Mode 0444.
  Status File(const RootEntry& file);
  Status Directory(const std::string& path);
  Status Link(const RootEntry& link);

 private:
  Result<int> Parent(const std::string& path);

  int dir_fd_;
  std::string parent_path_;
  UniqueFd parent_;
};

}  // namespace taskcell::native

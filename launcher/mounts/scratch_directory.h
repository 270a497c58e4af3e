#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::mounts {

// A private directory (0700) of this user below $XDG_RUNTIME_DIR or /tmp, which lives as long as
// this object does and goes with all that is in it. What a killed process left goes with the same
// user's next one of the same purpose (its lock is free then).
class ScratchDirectory {
 public:
  // `purpose` and `run_id` are plain names, `purpose` without a hyphen: the directory is
  // "taskcell-<purpose>-<uid>-<run id>".
  static Result<ScratchDirectory> Make(std::string_view purpose, const std::string& run_id);

  // The same below /tmp and 0711: other users reach what they know the name of.
  static Result<ScratchDirectory> MakePassable(std::string_view purpose, const std::string& run_id);

  ScratchDirectory() = default;
  ScratchDirectory(ScratchDirectory&&) noexcept = default;
  ScratchDirectory& operator=(ScratchDirectory&&) = delete;
  ~ScratchDirectory();

  // Without links on the way.
  const std::string& path() const { return path_; }
  int fd() const { return directory_.get(); }

 private:
  static Result<ScratchDirectory> MakeIn(const std::string& base, std::string_view purpose,
                                         const std::string& run_id, mode_t mode);

  UniqueFd base_;  // the directory that holds it
  std::string name_;
  std::string path_;
  UniqueFd directory_;  // itself, locked
};

// A scratch directory whose process was killed.
struct AbandonedScratch {
  std::string path;
  std::string purpose;
  std::string run_id;
};

// Removes all of this user's whose run id is 32 hex digits, of every purpose, in both places; with
// `dry_run` they are only found. What cannot be looked at or removed stays, and is not among them.
std::vector<AbandonedScratch> RemoveAbandonedScratch(bool dry_run);

}  // namespace taskcell::mounts

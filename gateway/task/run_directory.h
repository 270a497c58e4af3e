#pragma once

#include <string>

#include "gateway/config/home.h"
#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/stored_snapshot.h"

namespace taskcell::gateway {

// 32 lowercase hex digits from the kernel's random source.
Result<std::string> MakeRunId();

// Opens `name` below `dir_fd`, a real directory of this user with mode 0700, which is made where it
// is missing, or must be where it `must_be_new`. Error code workspace_failed.
Result<UniqueFd> OpenPrivate(int dir_fd, const std::string& name, bool must_be_new);

// <home>/sandbox/runs/<run id>: what one run keeps on disk while it lasts, locked (flock) for as
// long, so that a sweep can tell; and beside it <home>/sandbox/snap: the snapshots of agent
// directories. Every level is a real directory of this user with mode 0700. A destructor that comes
// before Remove removes it with all that is in it, and the levels above it where they are empty.
class RunDirectory {
 public:
  // Error code workspace_failed when a level is a link, belongs to somebody else or is open to
  // others; nothing is left behind then that was not there.
  static Result<RunDirectory> Make(const Home& home, const std::string& run_id);

  RunDirectory(RunDirectory&&) = default;
  RunDirectory& operator=(RunDirectory&&) = delete;
  ~RunDirectory();

  int fd() const { return own_.get(); }
  mounts::SnapshotStore snapshots() const { return {snapshots_.get(), snapshots_path_}; }
  int sandbox_fd() const { return sandbox_.get(); }
  const std::string& path() const { return path_; }  // absolute, canonical

  // Removes the run's own directory; idempotent, may be retried.
  Status Remove();

  // After Remove: removes <home>/sandbox/runs, <home>/sandbox/snap and <home>/sandbox as well, if
  // they are empty. For refusals, which leave nothing; but <home>/sandbox stays where somebody gave
  // it an SELinux type of its own, which would be gone with it.
  void RemoveEmptyParents() const;

 private:
  RunDirectory() = default;
  static Result<RunDirectory> TryMake(const Home& home, const std::string& run_id);

  UniqueFd home_;
  UniqueFd sandbox_;
  UniqueFd runs_;
  UniqueFd snapshots_;
  UniqueFd own_;
  std::string snapshots_path_;
  std::string run_id_;
  std::string path_;
};

}  // namespace taskcell::gateway

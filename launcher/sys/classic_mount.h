#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/mount.h"

namespace taskcell::sys {

// The functions of mount.h by mount(2) alone, for a kernel or a filter without the descriptor based
// calls. mount(2) knows no detached mount, so each is made in a stage, a tmpfs of this mount
// namespace, and moved from there to its place. Every path given to it is /proc/self/fd/N: the file
// is the one that was opened and checked, whatever its name leads to by now.
class ClassicMounts {
 public:
  // Mounts the stage over `directory`, which is covered from then on, and has its places made by a
  // child with these ids: a process whose own are not mapped can make no file in its namespace.
  static Result<ClassicMounts> Make(const std::string& directory, uid_t uid, gid_t gid);

  Result<UniqueFd> MakeFileSystem(const char* type, std::initializer_list<FileSystemOption> options,
                                  uint64_t attributes);
  Result<UniqueFd> Clone(int fd, bool recursive);
  Result<UniqueFd> CloneAt(int dir_fd, const char* path);
  // Adds `set` to what the mount has: in a user namespace what it has may be locked, and remounting
  // it without would be refused.
  static Status SetAttributes(int fd, uint64_t set, bool recursive);
  static Status Attach(int mount_fd, int target_fd);
  static Status AttachAt(int mount_fd, int dir_fd, const char* name);

 private:
  explicit ClassicMounts(UniqueFd stage) : stage_(std::move(stage)) {}
  // The next empty place in the stage; its name.
  Result<std::string> NewPlace(bool directory);
  Result<UniqueFd> OpenPlace(const std::string& name) const;

  UniqueFd stage_;
  unsigned directories_used_ = 0;
  unsigned files_used_ = 0;
};

}  // namespace taskcell::sys

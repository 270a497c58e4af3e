#pragma once

#include <map>
#include <string>
#include <string_view>

#include "launcher/sys/file_tree.h"

namespace taskcell::test {

// A host's files in memory, with owners that need no privilege to make.
class MemoryHost : public sys::FileTree {
 public:
  // Makes a file; missing directories above it are root's.
  void Put(const std::string& path, std::string_view text, uint32_t uid = 0, uint32_t mode = 0644);
  void Directory(const std::string& path, uint32_t uid = 0, uint32_t mode = 0755);
  void Socket(const std::string& path, uint32_t uid = 0, uint32_t mode = 0666);
  void Link(const std::string& path, const std::string& target);
  void Attribute(const std::string& path, const std::string& name, std::string_view value) {
    attributes_[path + "\n" + name] = value;
  }
  void Remove(const std::string& path) { files_.erase(path); }
  // Makes reading `path` fail with `err`.
  void Forbid(const std::string& path, int err);
  void Own(const std::string& path, uint32_t uid) { files_[path].uid = uid; }
  void Mode(const std::string& path, uint32_t mode);

  // A cgroup directory of the unified hierarchy with all its control and limit files. `type` "-" is
  // the root cgroup's, which has none. The directory, cgroup.procs, cgroup.threads and
  // cgroup.subtree_control are `uid`'s, all else root's.
  void Cgroup(const std::string& path, uint32_t uid, std::string_view controllers,
              std::string_view subtree_control, std::string_view type = "domain",
              std::string_view processes = "");

  // A cgroup directory of the v1 hierarchy of one controller, with the limit files a kernel puts
  // there.
  void V1Cgroup(const std::string& path, std::string_view controller, uint32_t uid,
                uint32_t mode = 0755);

  // /proc of a process of `uid` in the cgroups `cgroup` and with the mounts `mountinfo`.
  void Process(uint32_t uid, std::string_view cgroup, std::string_view mountinfo);

  sys::FileSeen Read(const std::string& path, std::size_t limit) override;
  sys::FileSeen Look(const std::string& path) override;
  Result<std::string> ReadLink(const std::string& path) override;
  Result<std::string> ReadAttribute(const std::string& path, const char* name) override;
  Result<std::vector<sys::DirectoryEntry>> List(const std::string& path,
                                                std::size_t limit) override;

  int reads() const { return reads_; }

 private:
  void Insert(const std::string& path, sys::FileSeen seen);

  std::map<std::string, sys::FileSeen> files_;
  std::map<std::string, std::string> links_;
  std::map<std::string, std::string> attributes_;  // by path, line feed, name
  int reads_ = 0;
};

inline constexpr std::string_view kUnifiedMount =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 "
    "rw,nsdelegate,memory_recursiveprot\n";

}  // namespace taskcell::test

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace taskcell::probe::audit {

// What is mounted in this namespace, by the ids that statx(2) tells.
class MountNames {
 public:
  MountNames();
  // "tmpfs", "ext4 of /dev/sda1" or, where mountinfo does not tell, "a mount".
  std::string Describe(uint64_t mount_id) const;
  // The file system type, "" where it is not known.
  std::string TypeOf(uint64_t mount_id) const;

 private:
  std::map<uint64_t, std::pair<std::string, std::string>> by_id_;  // type and source
};

}  // namespace taskcell::probe::audit

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/mount_info.h"
#include "launcher/base/result.h"

namespace taskcell::mounts {

// Who answers for the files of a mount: what they hold, whose they are and where their links lead.
struct Server {
  enum class What : uint8_t {
    kKernel,  // the kernel of this host, from memory or a disk
    kUser,    // a process (FUSE)
    kHost,    // another host, or the one that runs this virtual machine
  };
  What what = What::kKernel;
  std::string type;               // of the file system, as in mountinfo; "" where it is not known
  std::optional<uid_t> uid = {};  // with kUser, who mounted it; none where that is not known
};

// True where files of this type (as in mountinfo) are what a process or another host says they are.
// Also of autofs, whose files come from elsewhere. Pure.
bool IsServed(std::string_view type);

// By one line of mountinfo; of autofs kKernel, since only root can mount it. Pure.
Server ServerOf(const MountInfoLine& mount);

// Of the mount `fd` (O_PATH will do) is on. Without asking the server, which may hang, as long as
// mountinfo has that mount; else by statfs(2).
Result<Server> ServerOf(int fd);

}  // namespace taskcell::mounts

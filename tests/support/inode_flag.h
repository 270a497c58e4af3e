#pragma once

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <string>

#include "launcher/base/unique_fd.h"

namespace taskcell::test {

// Sets or clears one of the flags of ioctl_iflags(2), such as FS_IMMUTABLE_FL. False where the file
// system has no such flags, or the caller may not.
inline bool SetInodeFlag(const std::string& path, int flag, bool on) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  int flags = 0;
  if (::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) return false;
  flags = on ? flags | flag : flags & ~flag;
  return ::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags) == 0;
}

}  // namespace taskcell::test

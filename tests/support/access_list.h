#pragma once

#include <sys/xattr.h>

#include <string>

namespace taskcell::test {

// Lets uid 1500 read, write and enter `path` by an access control list, after which the mode shows
// the list's mask, rwx, as the bits of the group. False where the file system takes no lists.
inline bool LetUser1500Write(const std::string& path) {
  // acl(5) as the kernel takes it: version 2; user, user 1500, group, mask, other.
  const unsigned char list[] = {2,    0,    0,    0,    1,    0,    7,    0,    0xff, 0xff, 0xff,
                                0xff, 2,    0,    7,    0,    0xdc, 0x05, 0,    0,    4,    0,
                                4,    0,    0xff, 0xff, 0xff, 0xff, 16,   0,    7,    0,    0xff,
                                0xff, 0xff, 0xff, 32,   0,    4,    0,    0xff, 0xff, 0xff, 0xff};
  return ::setxattr(path.c_str(), "system.posix_acl_access", list, sizeof list, 0) == 0;
}

}  // namespace taskcell::test

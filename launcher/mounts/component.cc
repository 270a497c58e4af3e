#include "launcher/mounts/component.h"

#include <fcntl.h>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::mounts {

Result<UniqueFd> OpenComponent(int dir_fd, const std::string& name, int flags, Crossing crossing) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    return Error(Kind::kInternal, Text("'", Printable(name), "' is not one path component"));
  const uint64_t resolve =
      sys::kResolveBeneath | (crossing == Crossing::kNever ? uint64_t{RESOLVE_NO_XDEV} : 0);
  return sys::OpenAt2(dir_fd, name, flags | O_NOFOLLOW, resolve);
}

}  // namespace taskcell::mounts

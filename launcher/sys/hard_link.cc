#include "launcher/sys/hard_link.h"

#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {

Status MakeHardLink(int dir_fd, const std::string& from, const std::string& to) {
  for (const std::string* path : {&from, &to})
    if (path->find('\0') != std::string::npos)
      return Error(Kind::kViolation, "link: a path holds a NUL byte");
  if (::linkat(dir_fd, from.c_str(), dir_fd, to.c_str(), 0) < 0)
    return Failure(Text("link '", to, "' (dir fd ", dir_fd, ")"));
  return Ok();
}

}  // namespace taskcell::sys

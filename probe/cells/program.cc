#include "probe/cells/program.h"

#include <fcntl.h>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::probe {

Result<std::string> FindProgram(std::string_view name) {
  std::string own = TRY(sys::ReadLink(AT_FDCWD, "/proc/self/exe"));
  std::string_view directory = std::string_view(own).substr(0, own.rfind('/') + 1);
  for (std::string_view place : {"", "../libexec/taskcell/"}) {
    Result<UniqueFd> file = sys::Open(Text(directory, place, name), O_PATH);
    if (file.ok()) return sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", file->get()));
  }
  return Error(Kind::kConfig, Text("the program ", name, " is neither in ", directory,
                                   " nor in ../libexec/taskcell beside it"))
      .Coded("workspace_failed");
}

}  // namespace taskcell::probe

#include <fcntl.h>

#include "gateway/task/task.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

// The canonical path of a program in one of the places, since mounts are planned without links.
Result<std::string> Find(std::string_view own_directory, std::string_view name) {
  for (std::string_view place : {"", "../libexec/taskcell/"}) {
    Result<UniqueFd> file = sys::Open(Text(own_directory, place, name), O_PATH);
    if (file.ok()) return sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", file->get()));
  }
  return Error(Kind::kConfig, Text("the program ", name, " is neither in ", own_directory,
                                   " nor in ../libexec/taskcell beside it"))
      .Coded("workspace_failed");
}

}  // namespace

Result<Programs> FindPrograms() {
  std::string own = TRY(sys::ReadLink(AT_FDCWD, "/proc/self/exe"));
  std::string_view directory = std::string_view(own).substr(0, own.rfind('/') + 1);
  return Programs{TRY(Find(directory, "taskcell-init")), TRY(Find(directory, "taskcell-launch")),
                  TRY(Find(directory, "taskcell-loop"))};
}

}  // namespace taskcell::gateway

#include "launcher/native/own_program.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::native {
namespace {

// By comparison with this program rather than by number: in an outer user namespace root itself may
// not be mapped, and then every file of it shows the overflow uid.
Status CheckProgram(int fd, const std::string& path) {
  struct stat info = TRY(sys::Stat(fd));
  UniqueFd self = TRY(sys::Open("/proc/self/exe", O_PATH));
  struct stat own = TRY(sys::Stat(self.get()));
  bool trusted = info.st_uid == own.st_uid || info.st_uid == 0;
  bool writable_by_others = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (S_ISREG(info.st_mode) && trusted && !writable_by_others) return Ok();
  return Error(Kind::kDenied,
               Text("'", Printable(path),
                    "' must be a plain file of root or of this program's owner that nobody else "
                    "may write"));
}

}  // namespace

Result<OwnProgram> OpenOwnProgram(std::string_view name) {
  std::string own = TRY(sys::ReadLink(AT_FDCWD, "/proc/self/exe"));
  std::string_view directory = std::string_view(own).substr(0, own.rfind('/') + 1);
  std::string beside = Text(directory, name);
  std::string installed = Text(directory, "../libexec/taskcell/", name);
  for (const std::string& path : {beside, installed}) {
    Result<UniqueFd> opened = sys::Open(path, O_PATH);
    if (!opened.ok() && opened.error().err == ENOENT) continue;
    UniqueFd fd = TRY(std::move(opened));
    TRY(CheckProgram(fd.get(), path));
    return OwnProgram{std::move(fd), path};
  }
  return Error(Kind::kUnsupported,
               Text(name, " is neither beside this program ('", Printable(beside), "') nor at '",
                    installed, "': install it there"),
               ENOENT);
}

}  // namespace taskcell::native

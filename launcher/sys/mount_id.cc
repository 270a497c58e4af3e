#include "launcher/sys/mount_id.h"

#include <fcntl.h>
#include <linux/stat.h>
#include <sys/stat.h>

#include <optional>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"

namespace taskcell::sys {
namespace {

constexpr std::size_t kMaxFdInfoBytes = 64U << 10U;

}  // namespace

Result<uint64_t> MountIdOf(int fd) {
  struct statx info = {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &info) < 0)
    return Failure(Text("statx (fd ", fd, ")"));
  if ((info.stx_mask & STATX_MNT_ID) != 0) return info.stx_mnt_id;
  return MountIdFromProc(fd);
}

bool MountIdIsToldByStat() {
  struct statx info = {};
  return ::statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_MNT_ID, &info) == 0 &&
         (info.stx_mask & STATX_MNT_ID) != 0;
}

Result<uint64_t> MountIdFromProc(int fd) {
  std::string path = Text("/proc/self/fdinfo/", fd);
  std::string text = TRY(ReadFile(AT_FDCWD, path, kMaxFdInfoBytes));
  constexpr std::string_view kName = "mnt_id:";
  for (std::string_view line : Split(text, '\n')) {
    if (!line.starts_with(kName)) continue;
    std::optional<uint64_t> number = ParseUnsigned(Trim(line.substr(kName.size())));
    if (number) return *number;
  }
  return Error(Kind::kUnsupported, Text(path, " tells no mount"));
}

}  // namespace taskcell::sys

#include <fcntl.h>
#include <linux/magic.h>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/init/attest.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::init {
namespace {

constexpr std::size_t kMaxMounts = 2048;

// What is at the mount point now, through the root and without any link on the way: when two mounts
// are stacked, the upper one; when a link redirected the engine, an error.
Status AddMount(const std::string& target, cell::InsideAttestation& seen) {
  cell::MountSeen mount;
  mount.target = target;
  Result<UniqueFd> file = sys::OpenAt2(AT_FDCWD, target, O_PATH | O_NOFOLLOW,
                                       RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  if (!file.ok()) {
    mount.open_error = file.error().err;
    seen.mounts.push_back(std::move(mount));
    return Ok();
  }
  struct stat info = TRY(sys::Stat(file->get()));
  mount.device = info.st_dev;
  mount.inode = info.st_ino;
  mount.mode = info.st_mode;
  if (target.starts_with("/dev/")) AddDevice(target, info, seen);
  if (S_ISDIR(info.st_mode)) {
    sys::FileSystem file_system = TRY(sys::FileSystemOf(file->get()));
    if (file_system.type == TMPFS_MAGIC) seen.tmpfs.push_back({target, file_system.size_bytes});
  }
  seen.mounts.push_back(std::move(mount));
  return Ok();
}

}  // namespace

Status AttestMounts(cell::InsideAttestation& seen) {
  std::vector<MountInfoLine> lines = TRY(ParseMountInfo(seen.mountinfo));
  if (lines.size() > kMaxMounts) {
    return Error(Kind::kViolation, Text("more than ", kMaxMounts, " mounts"));
  }
  for (const MountInfoLine& line : lines) TRY(AddMount(line.mount_point, seen));
  return Ok();
}

}  // namespace taskcell::init

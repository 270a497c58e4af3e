#include "launcher/mounts/server.h"

#include <fcntl.h>
#include <linux/magic.h>

#include <algorithm>
#include <array>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/sys/mount_id.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/self.h"

namespace taskcell::mounts {
namespace {

constexpr std::array<std::string_view, 8> kHosts = {"nfs", "nfs4", "cifs",     "smb3",
                                                    "9p",  "ceph", "virtiofs", "afs"};

bool IsOfHost(std::string_view type) {
  return std::find(kHosts.begin(), kHosts.end(), type) != kHosts.end();
}

bool IsFuse(std::string_view type) {
  return type == "fuse" || type == "fuseblk" || type.starts_with("fuse.") ||
         type.starts_with("fuseblk.");
}

// The last one: what a security module writes before it may hold anything.
std::optional<uid_t> UserOf(std::string_view super_options) {
  constexpr std::string_view kName = "user_id=";
  std::optional<uid_t> uid;
  for (std::string_view option : Split(super_options, ',')) {
    if (!option.starts_with(kName)) continue;
    const std::optional<uint64_t> number = ParseUnsigned(option.substr(kName.size()));
    uid =
        number && *number < UINT32_MAX ? std::optional(static_cast<uid_t>(*number)) : std::nullopt;
  }
  return uid;
}

// Read anew each time: the number of a mount that is gone is given to another.
Result<MountInfoLine> LineOf(int fd) {
  const uint64_t id = TRY(sys::MountIdOf(fd));
  const std::string text = TRY(sys::ReadProc("self/mountinfo", kMaxMountInfoBytes));
  std::vector<MountInfoLine> lines = TRY(ParseMountInfo(text));
  const auto found = std::find_if(lines.begin(), lines.end(),
                                  [id](const MountInfoLine& line) { return line.id == id; });
  if (found == lines.end()) return Error(Kind::kUnsupported, "mountinfo has no such mount");
  return std::move(*found);
}

// The types of kHosts, as statfs(2) tells them; virtiofs has FUSE's.
bool IsMagicOfHost(uint64_t magic) {
  constexpr uint64_t kCephMagic = 0x00C36400;
  constexpr std::array<uint64_t, 6> kMagics = {NFS_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
                                               V9FS_MAGIC,      kCephMagic,       AFS_FS_MAGIC};
  return std::find(kMagics.begin(), kMagics.end(), magic) != kMagics.end();
}

}  // namespace

bool IsServed(std::string_view type) { return type == "autofs" || IsFuse(type) || IsOfHost(type); }

Server ServerOf(const MountInfoLine& mount) {
  Server server;
  server.type = mount.type;
  if (IsOfHost(mount.type)) server.what = Server::What::kHost;
  if (IsFuse(mount.type)) {
    server.what = Server::What::kUser;
    server.uid = UserOf(mount.super_options);
  }
  return server;
}

Result<Server> ServerOf(int fd) {
  const Result<MountInfoLine> line = LineOf(fd);
  if (line.ok()) return ServerOf(line.value());
  const uint64_t magic = TRY(sys::FileSystemOf(fd)).type;
  Server server;
  if (IsMagicOfHost(magic)) server.what = Server::What::kHost;
  if (magic == FUSE_SUPER_MAGIC) server.what = Server::What::kUser;
  return server;
}

}  // namespace taskcell::mounts

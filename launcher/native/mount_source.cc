#include "launcher/native/mount_source.h"

#include <fcntl.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount.h"

namespace taskcell::native {
namespace {

constexpr uint64_t kGuarded = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

Status CheckSame(int fd, uint64_t device, uint64_t inode, cell::EntryKind kind) {
  struct stat info = TRY(sys::Stat(fd));
  if (info.st_dev != device || info.st_ino != inode) {
    return Error(Kind::kViolation, "it is not the file that was planned: it was replaced since",
                 ESTALE);
  }
  bool right = kind == cell::EntryKind::kDirectory ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode);
  if (right) return Ok();
  return Error(Kind::kViolation, kind == cell::EntryKind::kDirectory ? "it is not a directory"
                                                                     : "it is not a plain file");
}

uint64_t Attributes(const cell::PlannedMount& mount) {
  uint64_t attributes = kGuarded;
  if (!mount.writable) attributes |= MOUNT_ATTR_RDONLY;
  if (!mount.follows_links) attributes |= MOUNT_ATTR_NOSYMFOLLOW;
  return attributes;
}

Result<UniqueFd> Clone(int fd, const std::string& path, const MountTable& mounts,
                       uint64_t attributes) {
  TRY(mounts.CheckShown(fd, path));
  UniqueFd tree = TRY(sys::CloneMount(fd, true));
  TRY(sys::SetMountAttributes(tree.get(), attributes, 0, true));
  return tree;
}

Result<UniqueFd> PinSame(const std::string& source, uint64_t device, uint64_t inode,
                         cell::EntryKind kind) {
  UniqueFd pin = TRY(PinPath(source));
  TRY(CheckSame(pin.get(), device, inode, kind));
  return pin;
}

// Only what is in a tree of the own namespace can be copied: it comes to lie over the root for that
// long, which is not crossed on the way down from it.
Result<UniqueFd> CloneFile(const DetachedMount& detached) {
  UniqueFd root = TRY(sys::Open("/", O_PATH | O_DIRECTORY));
  TRY(sys::AttachMount(detached.tree.get(), root.get()));
  UniqueFd file = TRY(sys::CloneMountAt(detached.tree.get(), detached.file.c_str()));
  TRY(sys::DetachMount(detached.tree.get()));
  return file;
}

Result<MountSource> TakeDetached(const cell::PlannedMount& mount, const DetachedMount& detached) {
  UniqueFd tree =
      TRY(detached.file.empty() ? sys::Duplicate(detached.tree.get()) : CloneFile(detached));
  TRY(CheckSame(tree.get(), mount.device, mount.inode, mount.kind));
  TRY(sys::SetMountAttributes(tree.get(), Attributes(mount), 0, true));
  return MountSource{mount.target, mount.kind, std::move(tree), mount.writable};
}

Result<MountSource> Take(const cell::PlannedMount& mount, const MountTable& mounts) {
  UniqueFd pin = TRY(PinSame(mount.source, mount.device, mount.inode, mount.kind));
  return MountSource{mount.target, mount.kind,
                     TRY(Clone(pin.get(), mount.source, mounts, Attributes(mount))),
                     mount.writable};
}

// Of the Filesystem Hierarchy Standard, without those the host root is made from.
constexpr const char* kStages[] = {"/mnt", "/media", "/srv", "/opt", "/boot", "/home", "/sys"};

bool IsUsed(const cell::CellPlan& plan, std::string_view directory) {
  if (cell::IsAtOrBelow(plan.root_source, directory)) return true;
  return std::any_of(plan.mounts.begin(), plan.mounts.end(), [&](const cell::PlannedMount& mount) {
    return cell::IsAtOrBelow(mount.source, directory);
  });
}

}  // namespace

Result<std::string> FindStage(const cell::CellPlan& plan) {
  for (const char* directory : kStages) {
    if (IsUsed(plan, directory)) continue;
    Result<UniqueFd> found = PinPath(directory);
    bool elsewhere = !found.ok() && (found.error().err == ENOENT || found.error().err == ELOOP);
    if (elsewhere) continue;
    UniqueFd pin = TRY(std::move(found));
    if (S_ISDIR(TRY(sys::Stat(pin.get())).st_mode)) return std::string(directory);
  }
  return Error(
      Kind::kUnsupported,
      "this kernel or a filter lacks the newer mount calls (open_tree, move_mount, fsopen, "
      "mount_setattr), and mount(2) needs a directory to work in: none of /mnt, /media, "
      "/srv, /opt, /boot, /home and /sys is there and free of what the cell is made from. "
      "Make an empty /mnt");
}

Result<UniqueFd> PinPath(const std::string& path) {
  return sys::OpenAt2(AT_FDCWD, path, O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

Result<MountSource> TakePlannedMount(const cell::PlannedMount& mount, const MountTable& mounts) {
  return Take(mount, mounts).With(Text("mount '", Printable(mount.source), "'"));
}

Result<MountSource> TakeDetachedMount(const cell::PlannedMount& mount,
                                      const DetachedMount& detached) {
  return TakeDetached(mount, detached).With(Text("copy of '", Printable(mount.source), "'"));
}

Result<UniqueFd> PinRootDirectory(const cell::CellPlan& plan) {
  return PinSame(plan.root_source, plan.root_device, plan.root_inode, cell::EntryKind::kDirectory)
      .With(Text("root directory '", Printable(plan.root_source), "'"));
}

Result<MountSource> TakeRootDirectory(const cell::CellPlan& plan, const MountTable& mounts) {
  UniqueFd pin = TRY(PinRootDirectory(plan));
  return MountSource{"/", cell::EntryKind::kDirectory,
                     TRY(Clone(pin.get(), plan.root_source, mounts, kGuarded | MOUNT_ATTR_RDONLY))};
}

Result<UniqueFd> CloneReadOnly(int fd, const std::string& path, const MountTable& mounts) {
  return Clone(fd, path, mounts, kGuarded | MOUNT_ATTR_RDONLY);
}

}  // namespace taskcell::native

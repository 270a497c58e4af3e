#include "launcher/sys/mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <optional>

#include "launcher/base/text.h"
#include "launcher/sys/classic_mount.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {
namespace {

// Empty but where UseClassicMounts was called.
std::optional<ClassicMounts>& Classic() {
  static std::optional<ClassicMounts> classic;
  return classic;
}

int Descriptor(long result) { return static_cast<int>(result); }

std::string OptionText(const char* type, const FileSystemOption& option) {
  std::string text = Text("fsconfig ", type, " ", option.key);
  if (option.value != nullptr) text += Text("=", option.value);
  return text;
}

}  // namespace

Status UseClassicMounts(const std::string& directory, uid_t uid, gid_t gid) {
  Classic().emplace(TRY(ClassicMounts::Make(directory, uid, gid)));
  return Ok();
}

Result<UniqueFd> MakeFileSystem(const char* type, std::initializer_list<FileSystemOption> options,
                                uint64_t attributes) {
  if (Classic()) return Classic()->MakeFileSystem(type, options, attributes);
  int context = Descriptor(::syscall(SYS_fsopen, type, FSOPEN_CLOEXEC));
  if (context < 0) return Failure(Text("fsopen ", type));
  UniqueFd owner(context);
  for (const FileSystemOption& option : options) {
    int command = option.value == nullptr ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING;
    if (::syscall(SYS_fsconfig, context, command, option.key, option.value, 0) < 0)
      return Failure(OptionText(type, option));
  }
  if (::syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) < 0)
    return Failure(Text("fsconfig ", type, " create"));
  int mount = Descriptor(::syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes));
  if (mount < 0) return Failure(Text("fsmount ", type));
  return UniqueFd(mount);
}

Result<UniqueFd> CloneMount(int fd, bool recursive) {
  if (Classic()) return Classic()->Clone(fd, recursive);
  unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;
  if (recursive) flags |= AT_RECURSIVE;
  int mount = Descriptor(::syscall(SYS_open_tree, fd, "", flags));
  if (mount < 0) return Failure(Text("open_tree clone (fd ", fd, ")"));
  return UniqueFd(mount);
}

Result<UniqueFd> CloneMountAt(int dir_fd, const char* path) {
  if (Classic()) return Classic()->CloneAt(dir_fd, path);
  constexpr unsigned kFlags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW;
  int mount = Descriptor(::syscall(SYS_open_tree, dir_fd, path, kFlags));
  if (mount < 0) return Failure(Text("open_tree clone '", path, "'"));
  return UniqueFd(mount);
}

Status SetMountAttributes(int fd, uint64_t set, uint64_t clear, bool recursive) {
  if (Classic()) {
    if (clear == 0) return ClassicMounts::SetAttributes(fd, set, recursive);
    return Error(Kind::kInternal, "mount(2) is only used to add attributes");
  }
  struct mount_attr attributes = {};
  attributes.attr_set = set;
  attributes.attr_clr = clear;
  unsigned flags = AT_EMPTY_PATH | (recursive ? unsigned{AT_RECURSIVE} : 0U);
  if (::syscall(SYS_mount_setattr, fd, "", flags, &attributes, sizeof attributes) < 0)
    return Failure(Text("mount_setattr (fd ", fd, ")"));
  return Ok();
}

Status MapMountIds(int mount_fd, int user_ns_fd) {
  struct mount_attr attributes = {};
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<unsigned>(user_ns_fd);
  if (::syscall(SYS_mount_setattr, mount_fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes) < 0)
    return Failure(Text("mount_setattr IDMAP (fd ", mount_fd, ")"));
  return Ok();
}

Status AttachMount(int mount_fd, int target_fd) {
  if (Classic()) return ClassicMounts::Attach(mount_fd, target_fd);
  if (::syscall(SYS_move_mount, mount_fd, "", target_fd, "",
                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
    return Failure(Text("move_mount (fd ", mount_fd, ")"));
  return Ok();
}

Status AttachMountAt(int mount_fd, int dir_fd, const char* name) {
  if (Classic()) return ClassicMounts::AttachAt(mount_fd, dir_fd, name);
  if (::syscall(SYS_move_mount, mount_fd, "", dir_fd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
    return Failure(Text("move_mount to '", name, "' (dir fd ", dir_fd, ")"));
  return Ok();
}

Status DetachMount(int root_fd) {
  if (::fchdir(root_fd) < 0) return Failure(Text("fchdir (fd ", root_fd, ")"));
  if (::umount2(".", MNT_DETACH) < 0) return Failure(Text("umount2 (fd ", root_fd, ")"));
  if (::chdir("/") < 0) return Failure("chdir '/'");
  return Ok();
}

Status MakeAllMountsPrivate() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0)
    return Failure("mount '/' private");
  return Ok();
}

Status PivotInto(int root_fd) {
  if (::fchdir(root_fd) < 0) return Failure(Text("fchdir (fd ", root_fd, ")"));
  // Both names are ".": the old root comes to lie on top of the new one and is taken off at once,
  // so no directory for it is needed (pivot_root(2), "pivot_root(".", ".")").
  if (::syscall(SYS_pivot_root, ".", ".") < 0) return Failure("pivot_root");
  if (::umount2(".", MNT_DETACH) < 0) return Failure("umount2 of the old root");
  if (::chdir("/") < 0) return Failure("chdir '/'");
  return Ok();
}

}  // namespace taskcell::sys

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <string>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// The mount calls, descriptor based (fsopen(2), open_tree(2), move_mount(2), mount_setattr(2)):
// nothing here takes a path twice. Attributes are MOUNT_ATTR_* of <sys/mount.h>.

// From here on this process does all of it by mount(2), over a stage at `directory`
// (classic_mount.h): for a kernel or a filter that lacks one of the calls. The ids are ones that
// the caller's user namespace maps and that it may take.
Status UseClassicMounts(const std::string& directory, uid_t uid, gid_t gid);

// One fsconfig(2) string option, or a flag where `value` is nullptr.
struct FileSystemOption {
  const char* key;
  const char* value;
};

// Makes a new, detached file system of `type` with `options`, and a mount of it with `attributes`.
// The Error names the option that was refused.
Result<UniqueFd> MakeFileSystem(const char* type, std::initializer_list<FileSystemOption> options,
                                uint64_t attributes);

// open_tree(2) with OPEN_TREE_CLONE | AT_EMPTY_PATH: a detached copy of the mount `fd` stands on,
// rooted there. `recursive` copies the mounts below too; inside a user namespace a tree with mounts
// inherited from the parent can be copied in no other way (EINVAL, measured).
Result<UniqueFd> CloneMount(int fd, bool recursive);

// The same without mounts below, of `path` below `dir_fd`, whose last component may be no link.
// CRITICAL: links on the way are followed, so only for a path that is the caller's or the kernel's
// own, or with a look at what came of it.
Result<UniqueFd> CloneMountAt(int dir_fd, const char* path);

// mount_setattr(2) on the mount `fd` is the root of: adds `set`, takes away `clear`.
Status SetMountAttributes(int fd, uint64_t set, uint64_t clear, bool recursive);

// mount_setattr(2) with MOUNT_ATTR_IDMAP on the detached mount: its ids are seen through the user
// namespace `user_ns_fd`.
Status MapMountIds(int mount_fd, int user_ns_fd);

// move_mount(2) of the detached mount `mount_fd` onto what `target_fd` (O_PATH) stands for.
Status AttachMount(int mount_fd, int target_fd);

// The same onto `name` below `dir_fd`, a directory whose names are the caller's or the kernel's
// own.
Status AttachMountAt(int mount_fd, int dir_fd, const char* name);

// umount2(2) with MNT_DETACH of the attached mount that `root_fd` is the root of and over which
// nothing lies. "/" becomes the working directory.
Status DetachMount(int root_fd);

// Makes every mount of this namespace private: nothing propagates in or out.
Status MakeAllMountsPrivate();

// Changes into `root_fd`, the root of an attached mount, makes it the root of this mount namespace
// and detaches the old root with all that is below it. CRITICAL: afterwards only descriptors opened
// before still reach the old tree.
Status PivotInto(int root_fd);

}  // namespace taskcell::sys

// Mounts made, changed or taken away, and roots left by them.
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "mounts";

// Of mount(2) and umount2(2), whose own header does not go together with the kernel's.
constexpr uint64_t kRemount = 0x20;
constexpr uint64_t kBind = 0x1000;
constexpr uint64_t kRecursive = 0x4000;
constexpr uint64_t kPrivate = 0x40000;
constexpr uint64_t kDetach = 2;

// The newer calls' numbers are the same on every architecture.
constexpr long kOpenTree = 428;
constexpr long kMoveMount = 429;
constexpr long kFsopen = 430;
constexpr long kFsconfig = 431;
constexpr long kFsmount = 432;
constexpr long kMountSetattr = 442;

int64_t MountAt(const std::string& place, const char* type, const char* options = nullptr) {
  return Call(SYS_mount, "none", place.c_str(), type, 0, options);
}

Attempted MountTmpfs(const Targets& targets) { return Of(MountAt(targets.scratch, "tmpfs")); }

Attempted MountProc(const Targets& targets) { return Of(MountAt(targets.scratch, "proc")); }

// Of two directories below and none above, so read-only. They are its own: below one of the host's
// something may be mounted, which an overlay in a user namespace must not uncover.
Attempted MountOverlay(const Targets& targets) {
  std::string layers[] = {targets.scratch + "/upper-layer", targets.scratch + "/lower-layer"};
  constexpr int kMode = 0700;
  for (const std::string& layer : layers) {
    int64_t made = Call(SYS_mkdir, layer.c_str(), kMode);
    if (made < 0 && made != -EEXIST) return Of(made, layer);
  }
  std::string options = Text("lowerdir=", layers[0], ":", layers[1]);
  return Of(MountAt(targets.scratch, "overlay", options.c_str()));
}

Attempted BindRoot(const Targets& targets) {
  return Of(Call(SYS_mount, "/", targets.scratch.c_str(), 0, kBind | kRecursive, 0));
}

Attempted RemountRoot(const Targets& /*targets*/) {
  return Of(Call(SYS_mount, 0, "/", 0, kRemount | kBind, 0));
}

// One that was read-only: /proc/sys in a cell, and outside what the payload makes so itself.
Attempted RemountProtected(const Targets& targets) {
  // Its outcome shows in the next call.
  (void)Call(SYS_mount, "/proc/sys", "/proc/sys", 0, kBind, 0);
  Attempted remounted = Of(Call(SYS_mount, 0, "/proc/sys", 0, kRemount | kBind, 0));
  (void)targets;
  return remounted;
}

Attempted AttachDetached(const Targets& targets) {
  int64_t opened =
      Call(kOpenTree, AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (opened < 0) return Of(opened, "open_tree");
  UniqueFd tree(static_cast<int>(opened));
  return Of(
      Call(kMoveMount, tree.get(), "", AT_FDCWD, targets.scratch.c_str(), MOVE_MOUNT_F_EMPTY_PATH),
      "move_mount");
}

Attempted MakeFileSystem(const Targets& /*targets*/) {
  int64_t opened = Call(kFsopen, "tmpfs", FSOPEN_CLOEXEC);
  if (opened < 0) return Of(opened, "fsopen");
  UniqueFd context(static_cast<int>(opened));
  int64_t made = Call(kFsconfig, context.get(), FSCONFIG_CMD_CREATE, 0, 0, 0);
  if (made < 0) return Of(made, "fsconfig");
  int64_t mounted = Call(kFsmount, context.get(), FSMOUNT_CLOEXEC, 0);
  UniqueFd closes_it(mounted < 0 ? -1 : static_cast<int>(mounted));
  return Of(mounted, "fsmount");
}

Attempted ClearReadOnly(const Targets& /*targets*/) {
  struct mount_attr attributes = {};
  attributes.attr_clr = MOUNT_ATTR_RDONLY;
  return Of(Call(kMountSetattr, AT_FDCWD, "/", 0, &attributes, sizeof attributes));
}

Attempted ShareMounts(const Targets& /*targets*/) {
  constexpr uint64_t kShared = 0x100000;
  return Of(Call(SYS_mount, 0, "/", 0, kShared | kRecursive, 0));
}

Attempted PivotRoot(const Targets& targets) {
  // In a cell these are refused already, and pivot_root all the same.
  (void)Call(SYS_mount, 0, "/", 0, kPrivate | kRecursive, 0);
  (void)MountAt(targets.scratch, "tmpfs");
  if (Call(SYS_chdir, targets.scratch.c_str()) < 0) return {ENOENT, "chdir"};
  return Of(Call(SYS_pivot_root, ".", "."));
}

// Whoever has a working directory outside of its root walks up past it.
Attempted LeaveChroot(const Targets& targets) {
  std::string inner = targets.scratch + "/inner";
  (void)Call(SYS_mkdirat, AT_FDCWD, inner.c_str(), 0700);
  int64_t changed = Call(SYS_chroot, inner.c_str());
  if (changed < 0) return Of(changed, "chroot");
  for (int level = 0; level < 32; ++level) (void)Call(SYS_chdir, "..");
  return TryOpening("proc/self/status", O_RDONLY);
}

// A handle needs no path: with it a container once read every file of the host's disk.
Attempted OpenByHandle(const Targets& targets) {
  // As struct file_handle, whose last member has no size.
  struct {
    uint32_t bytes = sizeof(bytes_of_it);
    int32_t type = 0;
    unsigned char bytes_of_it[128] = {};
  } named;
  int mount_id = 0;
  const std::string& path = targets.secret.empty() ? "/" : targets.secret;
  int64_t answered = Call(SYS_name_to_handle_at, AT_FDCWD, path.c_str(), &named, &mount_id, 0);
  if (answered == -ENOENT) {
    // In a cell there is no such path; that of the root is as good to find out what is let through.
    answered = Call(SYS_name_to_handle_at, AT_FDCWD, "/", &named, &mount_id, 0);
  }
  if (answered < 0) return Of(answered, "name_to_handle_at");
  int64_t root = OpenFile("/", O_RDONLY | O_DIRECTORY);
  if (root < 0) return Of(root, "/");
  UniqueFd mount(static_cast<int>(root));
  int64_t opened = Call(SYS_open_by_handle_at, mount.get(), &named, O_RDONLY | O_CLOEXEC);
  UniqueFd closes_it(opened < 0 ? -1 : static_cast<int>(opened));
  return Of(opened, "open_by_handle_at");
}

constexpr Control kOutsideRoot = Control::kNamespace;

constexpr Payload kPayloads[] = {
    {"mount-tmpfs", kTopic, "mount a tmpfs", kOutsideRoot, {EPERM}, MountTmpfs},
    {"mount-proc", kTopic, "mount a proc without covers", kOutsideRoot, {EPERM}, MountProc},
    {"mount-overlay", kTopic, "mount an overlay", kOutsideRoot, {EPERM}, MountOverlay},
    {"bind-root", kTopic, "bind the root to where it may write", kOutsideRoot, {EPERM}, BindRoot},
    {"remount-root", kTopic, "remount the root read-write", kOutsideRoot, {EPERM}, RemountRoot},
    {"remount-protected",
     kTopic,
     "remount /proc/sys read-write",
     kOutsideRoot,
     {EPERM},
     RemountProtected},
    {"detached-mount",
     kTopic,
     "copy the mounts as a detached tree and attach it elsewhere",
     kOutsideRoot,
     {EPERM},
     AttachDetached},
    {"new-file-system",
     kTopic,
     "make a file system by descriptors alone",
     kOutsideRoot,
     {EPERM},
     MakeFileSystem},
    {"mount-attributes",
     kTopic,
     "take read-only away by mount_setattr",
     kOutsideRoot,
     {EPERM},
     ClearReadOnly},
    {"shared-mounts", kTopic, "let its mounts propagate", kOutsideRoot, {EPERM}, ShareMounts},
    {"unmount",
     kTopic,
     "unmount /proc with what covers parts of it",
     kOutsideRoot,
     {EPERM},
     [](const Targets&) { return Of(Call(SYS_umount2, "/proc", kDetach)); }},
    {"pivot-root", kTopic, "make another directory the root", kOutsideRoot, {EPERM}, PivotRoot},
    {"leave-chroot",
     kTopic,
     "walk out of a root by a working directory outside of it",
     kOutsideRoot,
     {EPERM},
     LeaveChroot},
    {"file-handle",
     kTopic,
     "open a file by a handle instead of a path",
     Control::kRoot,
     {EPERM},
     OpenByHandle},
};

}  // namespace

std::span<const Payload> MountPayloads() { return kPayloads; }

}  // namespace taskcell::attack

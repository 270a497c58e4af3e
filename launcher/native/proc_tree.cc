#include "launcher/native/proc_tree.h"

#include <fcntl.h>
#include <sys/mount.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount.h"
#include "launcher/sys/proc.h"

namespace taskcell::native {
namespace {

constexpr uint64_t kAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

// What an ordinary container hides, and what of the host it would show.
constexpr const char* kHidden[] = {"acpi",      "asound",  "interrupts",    "kcore",
                                   "key-users", "keys",    "latency_stats", "sched_debug",
                                   "scsi",      "thermal", "timer_list",    "timer_stats"};
constexpr const char* kReadOnly[] = {"sys", "irq", "bus", "fs", "sysrq-trigger"};

// All names here are the kernel's own in a proc that nobody else has seen yet: none is a link.

Status Cover(const ProcTree& proc, const char* name, int null_device) {
  Result<struct stat> info = sys::StatAt(proc.mount.get(), name);
  if (!info.ok()) return info.error().err == ENOENT ? Ok() : Status(std::move(info).error());
  UniqueFd cover;
  if (S_ISDIR(info->st_mode)) {
    cover = TRY(sys::MakeFileSystem("tmpfs", {{"size", "4k"}, {"mode", "0555"}},
                                    kAttributes | MOUNT_ATTR_RDONLY));
  } else {
    cover = TRY(sys::CloneMount(null_device, false));
  }
  return sys::AttachMountAt(cover.get(), proc.mount.get(), name);
}

Status Protect(const ProcTree& proc, const char* name) {
  Result<UniqueFd> copied = sys::CloneMountAt(proc.mount.get(), name);
  if (!copied.ok() && copied.error().err == ENOENT) return Ok();
  UniqueFd copy = TRY(std::move(copied));
  TRY(sys::SetMountAttributes(copy.get(), kAttributes | MOUNT_ATTR_RDONLY, 0, false));
  return sys::AttachMountAt(copy.get(), proc.mount.get(), name);
}

// The kernel lets a user namespace mount a proc only where it sees a whole one already
// (mount_too_revealing in fs/namespace.c).
Error CoveredProc(const Error& error) {
  return Error(Kind::kUnsupported,
               error.text +
                   ": the kernel gives no new /proc to a process whose own /proc is missing or "
                   "covered in places, as in most containers. Start this outside of the container, "
                   "or uncover its /proc from outside (podman: --security-opt unmask=ALL)",
               error.err);
}

Result<UniqueFd> MakeProc(bool subset) {
  // Invisible, by the name that kernels before 5.8 know as well.
  if (!subset) return sys::MakeFileSystem("proc", {{"hidepid", "2"}}, kAttributes);
  return sys::MakeFileSystem("proc", {{"hidepid", "2"}, {"subset", "pid"}}, kAttributes);
}

}  // namespace

Result<ProcTree> MakeProcTree(CellRoot& root, bool subset) {
  ProcTree proc;
  proc.subset = subset;
  Result<UniqueFd> whole = MakeProc(subset);
  if (!subset && !whole.ok() && whole.error().err == EPERM) {
    whole = MakeProc(true);
    proc.subset = true;
  }
  if (!whole.ok() && whole.error().err == EPERM) return CoveredProc(whole.error());
  proc.mount = TRY(std::move(whole));
  TRY(root.Attach("/proc", cell::EntryKind::kDirectory, proc.mount.get()));
  return proc;
}

Status MaskProcTree(CellRoot& root, const ProcTree& proc) {
  UniqueFd null_device = TRY(root.OpenTarget("/dev/null", cell::EntryKind::kFile));
  for (const char* name : kHidden)
    TRY(Cover(proc, name, null_device.get()).With(Text("'/proc/", name, "'")));
  for (const char* name : kReadOnly) TRY(Protect(proc, name).With(Text("'/proc/", name, "'")));
  return Ok();
}

Status WriteNamespaceSysctls(const ProcTree& proc) {
  // The kernel takes these for the writer's user namespace, whichever proc they are reached by; a
  // subset one has no sys, so the one of the old root serves.
  sys::Proc base =
      proc.subset ? TRY(sys::Proc::Open()) : sys::Proc(TRY(sys::Duplicate(proc.mount.get())));
  TRY(base.Write("sys/user/max_user_namespaces", "0"));
  TRY(base.Write("sys/user/max_inotify_instances", kInotifyInstances));
  return base.Write("sys/user/max_inotify_watches", kInotifyWatches);
}

}  // namespace taskcell::native

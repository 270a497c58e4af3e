// In place of what taskcell-launch calls to make a cell hold: nothing is given up, covered or
// closed off, and neither network nor IPC is the cell's own. Linked over the real functions
// (--wrap).
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <string>

#include "launcher/base/result.h"
#include "launcher/native/cell_root.h"
#include "launcher/native/proc_tree.h"
#include "launcher/native/source_walk.h"
#include "launcher/sys/process.h"
#include "launcher/sys/trial.h"

namespace taskcell::test {

// What a process of another uid than 0 keeps over exec: the ambient set.
Status KeepCapabilities() __asm__("__wrap__ZN8taskcell3sys16DropCapabilitiesEv");
Status KeepCapabilities() {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[2] = {};
  (void)sys::RawSyscall(SYS_capget, sys::Address(&header), sys::Address(&sets));
  for (auto& set : sets) set.inheritable = set.permitted;
  (void)sys::RawSyscall(SYS_capset, sys::Address(&header), sys::Address(&sets));
  for (uint64_t capability = 0; capability < 64; ++capability)
    (void)sys::RawSyscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability);
  return Ok();
}

Status LeaveSecurebits() __asm__("__wrap__ZN8taskcell3sys14LockSecurebitsEv");
Status LeaveSecurebits() { return Ok(); }

Status KeepBoundingSet() __asm__("__wrap__ZN8taskcell3sys15DropBoundingSetEv");
Status KeepBoundingSet() { return Ok(); }

Status AllowNewPrivileges() __asm__("__wrap__ZN8taskcell3sys18SetNoNewPrivilegesEv");
Status AllowNewPrivileges() { return Ok(); }

Status StayDumpable() __asm__("__wrap__ZN8taskcell3sys14SetNotDumpableEv");
Status StayDumpable() { return Ok(); }

Status LeaveLoopback() __asm__("__wrap__ZN8taskcell3sys13SetLoopbackUpEv");
Status LeaveLoopback() { return Ok(); }

Status LeaveSysctls(const native::ProcTree& proc) __asm__(
    "__wrap__ZN8taskcell6native21WriteNamespaceSysctlsERKNS0_8ProcTreeE");
Status LeaveSysctls(const native::ProcTree& /*proc*/) { return Ok(); }

Status LeaveProc(native::CellRoot& root, const native::ProcTree& proc) __asm__(
    "__wrap__ZN8taskcell6native12MaskProcTreeERNS0_8CellRootERKNS0_8ProcTreeE");
Status LeaveProc(native::CellRoot& /*root*/, const native::ProcTree& /*proc*/) { return Ok(); }

// A member function: the object is its first argument.
Status LeaveUnsealed(native::CellRoot* root) __asm__("__wrap__ZN8taskcell6native8CellRoot4SealEv");
Status LeaveUnsealed(native::CellRoot* /*root*/) { return Ok(); }

Status TakeAnySource(int fd, const std::string& path, const native::WalkBounds& bounds) __asm__(
    "__wrap__ZN8taskcell6native11CheckSourceEiRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE"
    "ERKNS0_10WalkBoundsE");
Status TakeAnySource(int /*fd*/, const std::string& /*path*/,
                     const native::WalkBounds& /*bounds*/) {
  return Ok();
}

Result<sys::Cloned> RealClone(uint64_t flags,
                              int cgroup_fd) __asm__("__real__ZN8taskcell3sys12CloneProcessEmi");
Result<sys::Cloned> ShareNamespaces(uint64_t flags, int cgroup_fd) __asm__(
    "__wrap__ZN8taskcell3sys12CloneProcessEmi");
Result<sys::Cloned> ShareNamespaces(uint64_t flags, int cgroup_fd) {
  constexpr uint64_t kShared = WEAK_SHARED ? CLONE_NEWNET | CLONE_NEWIPC : 0;
  return RealClone(flags & ~kShared, cgroup_fd);
}

}  // namespace taskcell::test

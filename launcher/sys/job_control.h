#pragma once

#include <sys/types.h>

#include <optional>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"

namespace taskcell::sys {

// What a parent of many processes needs: sessions and groups, signals to all, and reaping.

// For a program that has just begun, and has no handlers yet: gives every signal that is ignored
// its default action, and blocks SIGCHLD and SIGPIPE.
Status TakeSignals();

// Unblocks every signal: for a child, before its exec.
Status ReleaseSignals();

// signalfd(2) for SIGCHLD, not blocking. SIGCHLD must be blocked.
Result<UniqueFd> MakeChildSignalFd();

// Empties a signalfd.
void DrainSignals(int signal_fd);

// setsid(2).
Status StartSession();

// setpgid(0, 0).
Status StartGroup();

// Ignores `signal`, which an exec hands on.
Status IgnoreSignal(int signal);

// PR_SET_CHILD_SUBREAPER: what this process's descendants leave behind becomes its child, instead
// of process 1's.
Status AdoptOrphans();

// umask(2) and personality(2) as a fresh login has them: 022 and PER_LINUX. Both are handed on by
// fork and exec, so what the caller had (readable memory made executable, no address space
// randomisation) would be the job's.
Status ResetModes();

// Leaves a real-time scheduling policy for the ordinary one, with the nice value as it is, and the
// real-time io class for none. Any other policy or class, all of which give a process less, stays.
Status LeaveRealTime();

// How this process is scheduled: sched_getscheduler(2) without SCHED_RESET_ON_FORK, and the class
// of ioprio_get(2), 0 where kernel or filter do not tell (ENOSYS, EPERM).
struct Scheduling {
  uint32_t policy = 0;
  uint32_t io_class = 0;
};
Result<Scheduling> OwnScheduling();

// The mask of umask(2), which is as it was afterwards.
uint32_t FileMask();

// personality(2) as it was; from here on it is PER_LINUX. Asking alone is what a filter may forbid
// that locks a personality (LockPersonality= of a systemd unit), setting the same is not.
Result<uint32_t> TakePersonality();

// kill(2) of every process of this pid namespace but its process 1, which must be the caller:
// anywhere else it is refused (kInternal), since it would reach the whole host. No process left is
// no failure.
Status SignalAll(int signal);

// kill(2) of the process group `group`. No process left is no failure.
Status SignalGroup(pid_t group, int signal);

// True when a process is in the group `group`; always for 1, which is init's.
bool IsGroup(pid_t group);

// One child that changed.
struct ChildEvent {
  pid_t pid = 0;
  bool stopped = false;  // else it ended and is reaped
  int status = 0;        // exit status, where signal is 0
  int signal = 0;        // what ended or stopped it
};
// waitid(P_ALL, WEXITED | WSTOPPED | WNOHANG): nothing when no child changed or none is left;
// `none_left` then tells which.
Result<std::optional<ChildEvent>> NextChildEvent(bool& none_left);

}  // namespace taskcell::sys

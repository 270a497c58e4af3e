#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/cell/job_settings.h"

namespace taskcell::init {

// What a job is confined to, beyond what the cell itself is.
struct Confinement {
  std::string_view mountinfo;       // of the cell: WritableMounts
  uint64_t nofile = 0;              // RLIMIT_NOFILE; 0: as it is
  uint64_t file_bytes = 0;          // RLIMIT_FSIZE; 0: as it is
  int landlock_abi = 0;             // 0: the kernel has no Landlock
  std::vector<sock_filter> filter;  // empty: the default one
};

// Reads which mounts of the cell may be written: those mounted read-write, but for the root and for
// what is in /proc, /sys and /dev (/dev/shm is writable). Pure.
Result<std::vector<std::string>> WritableMounts(std::string_view mountinfo);

// Puts the calling process, the one that will be the job, under its confinement for good: limits
// (no core files), an oom_score_adj that makes it die before init, ApplySettings, Landlock,
// no_new_privs and the seccomp filter. It has its 0, 1 and 2 by now. `stage` names the step that
// failed. `seen` is read last before the filter, which may forbid to ask.
//
// Landlock: everything visible can be read and executed; written only what WritableMounts names,
// the terminal and the harmless devices, and the regular files the job was given as 0, 1 and 2. No
// abstract socket and no process outside (init) can be reached (ABI 6).
Status ConfineSelf(const Confinement& confinement, std::string_view& stage,
                   cell::SettingsSeen& seen);

// After ConfineSelf, once the job is known: TCP connections go to `port` alone, and to
// `tunnel_port` where that is not 0, where the kernel's Landlock knows ports. Binding is left free:
// nothing but the cell itself can reach its loopback, and programs bind ports just to see whether
// they can.
Status ConfineToPorts(int landlock_abi, uint16_t port, uint16_t tunnel_port);

// After ConfineSelf: no terminal can be set any more (modes, foreground group; EPERM). For a job
// that holds its caller's terminal without being in the foreground there: it needs but to block
// SIGTTOU to take what is typed next.
Status LeaveTerminalsAlone();

}  // namespace taskcell::init

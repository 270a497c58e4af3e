#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/cgroup/situation.h"

namespace taskcell::cgroup {

// What keeps a limit from being enforced. In the order in which the conditions are tried; on the
// way down a chain the level nearer to the root decides.
enum class Fault : uint8_t {
  kNone,
  kUnreadable,           // a file that must be there is not, or cannot be read
  kContradiction,        // two files that cannot both be true
  kNotMounted,           // no hierarchy holds the controller here
  kCovered,              // something else is mounted over the hierarchy
  kReadOnly,             // the mount
  kNotVisible,           // the own cgroup lies outside of what is mounted
  kNotOffered,           // the root of the hierarchy has no such controller
  kOffAtBoot,            // the same, and the kernel's command line says why
  kHeldByV1,             // the same, and a v1 hierarchy somewhere has it
  kNotPassedIn,          // the root of a container has no such controller
  kThreaded,             // a level's cgroup.type
  kNotHandedOn,          // a level's cgroup.subtree_control
  kFrozen,               // a level's cgroup.freeze
  kFull,                 // a level's cgroup.max.depth or cgroup.max.descendants
  kNotDelegated,         // the cgroup is not the user's own
  kWritableByOthers,     // it is, and other users may write it
  kControlNotDelegated,  // it is, but not its control files
  kForeignProcesses,     // it holds processes that cannot be moved from here
  kBusyRoot,             // root would have to make its cgroup below one that holds processes
  kNoBandwidth,          // the kernel limits no processor time
  kSwapUnaccounted,      // the host has swap and the kernel does not account it
  kOutOfReach,           // a cgroup is prepared for the user, but this process is not in it
  kUnmanagedV1,          // v1: nobody handed a directory over
};

enum class LimitState : uint8_t { kYes, kNo, kUnknown };
std::string_view Name(LimitState state);  // "yes", "no", "unknown"

// Who must act.
enum class Who : uint8_t { kNone, kUser, kAdmin, kOuter, kKernel };
std::string_view Name(Who who);  // "none", "user", "admin", "outer", "kernel"

// Whether a user can limit one controller from where a process is, and if not, why and what to do.
struct Diagnosis {
  Fault fault = Fault::kNone;
  LimitState state = LimitState::kYes;
  std::string level;  // the cgroup directory at fault, "" where none is
  std::string file;   // the file that decided, absolute; "" where none did
  std::string value;  // what shows the fault: what the file holds, its owner, or that it is missing
  std::string reason;  // one sentence, without a full stop
  Who who = Who::kNone;
  std::string fix;    // what that person does, with commands; "" where there is nothing to do
  std::string place;  // kYes: the directory below which cells would be made
  // The smallest limit that is already in force on the process's cgroup or above: bytes, processes,
  // or thousandths of a core; and the file that sets it.
  std::optional<uint64_t> outer_limit;
  std::string outer_file;
};

// Judges one controller by the conditions that must all hold (cgroups(7), "Delegation" and "no
// internal processes"), from the root downwards. Evidence that is missing or contradicts itself
// gives kUnknown, never a guess. What the launcher does by itself (moving the processes of the own
// cgroup aside, handing controllers on from it) is no fault. Pure.
Diagnosis Diagnose(const Situation& situation, Controller controller);

// The same for one hierarchy that holds the controller.
Diagnosis DiagnoseChain(const Chain& chain, const Surroundings& around, Controller controller);

}  // namespace taskcell::cgroup

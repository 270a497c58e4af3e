#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "launcher/base/mount_info.h"
#include "launcher/cell/attestation.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/compare.h"

namespace taskcell::cell {

// What kind of mount an engine adds to a cell by itself.
enum class AdditionKind : uint8_t {
  kFileSystem,  // a file system of its own, whole
  kMask,        // hides what is below: an empty read-only tmpfs or the null device
  kPart,        // a part of the file system around it (/proc/sys of /proc), read-only
  kFile,        // a regular file the engine wrote, read-only
  kDevice,      // a character device
  kTree,        // a directory of the host, read-only; only for RootKind::kHost
};

// One mount point an engine adds. Whatever is mounted beyond the plan must be such a row, with a
// file system of the types given and at least the options given, and must neither receive the
// host's mounts nor send its own.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order in which a row reads
struct Addition {
  std::string_view target;  // exact, or, ending in "/*", any one level or more below
  AdditionKind kind = AdditionKind::kFileSystem;
  std::string_view types;     // comma-separated; empty: any
  std::string_view required;  // options of the mount, comma-separated
  bool may_follow = false;    // a device bound from the engine's /dev may be a slave of that mount
};

// The table of an engine for this root, /proc first. Documented nowhere as a whole: taken from
// cells these engines really made.
std::span<const Addition> EngineAdditions(Engine engine, RootKind root);

// Names an engine sets in the environment of process 1 whatever the image says.
std::span<const std::string_view> EngineEnvironment(Engine engine);

// Says why the mount is not what the row allows; empty where it is. `seen` is what init found at
// the mount point. Pure.
std::string WhyNotAddition(const Addition& addition, const MountInfoLine& line,
                           const MountSeen& seen);

// The row for a mount point, or null.
const Addition* FindAddition(Engine engine, RootKind root, std::string_view target);

}  // namespace taskcell::cell

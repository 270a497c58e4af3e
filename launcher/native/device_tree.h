#pragma once

#include <vector>

#include "launcher/base/result.h"
#include "launcher/native/cell_root.h"
#include "launcher/native/mount_source.h"

namespace taskcell::native {

// Size of the cell's /dev/shm; it counts against the memory limit.
inline constexpr char kSharedMemorySize[] = "64m";

// A device of the host, waiting to be attached to the cell's /dev.
struct DeviceNode {
  const char* name;
  UniqueFd tree;
};

// Detaches copies of the host's null, zero, full, random, urandom and tty, each proven by its
// device number to be what its name says.
Result<std::vector<DeviceNode>> TakeDevices();

// Makes the cell's /dev: those devices, fd, stdin, stdout and stderr, a devpts of its own with ptmx
// and a small noexec shm. The directory itself becomes read-only.
Status MakeDeviceTree(CellRoot& root, const std::vector<DeviceNode>& devices);

}  // namespace taskcell::native

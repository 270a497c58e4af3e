#pragma once

#include <cstdint>
#include <string_view>

namespace taskcell::cell {

// File systems through which the kernel itself is read or driven, or whose memory no limit counts:
// nothing on one of them is ever given to a cell.

// The type of the one whose fstatfs(2) f_type is `magic`; empty for any other file system.
std::string_view KernelFileSystemType(uint64_t magic);

// True for a type as in /proc/self/mountinfo that is one of them.
bool IsKernelFileSystem(std::string_view type);

}  // namespace taskcell::cell

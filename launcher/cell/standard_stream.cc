#include "launcher/cell/standard_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/cell/kernel_file_systems.h"

namespace taskcell::cell {
namespace {

// /dev/null, zero, full, random and urandom: minor numbers of the memory devices.
constexpr uint32_t kMemoryDevices = 1;
constexpr uint32_t kHarmless[] = {3, 5, 7, 8, 9};

bool IsHarmless(const DescriptorSeen& device) {
  if (device.terminal) return device.device != makedev(5, 2);  // ptmx: the wrong side of one
  return std::any_of(std::begin(kHarmless), std::end(kHarmless), [&](uint32_t minor) {
    return device.device == makedev(kMemoryDevices, minor);
  });
}

std::string FileFault(const DescriptorSeen& file) {
  std::string_view type = KernelFileSystemType(file.filesystem);
  if (type.empty()) return {};
  return Text("is a file of the kernel's own (", type,
              "), by which a cell would reach what is outside");
}

}  // namespace

std::string StreamFault(const DescriptorSeen& descriptor, bool landlock) {
  if (descriptor.access == O_PATH) return "only names a file (O_PATH)";
  switch (descriptor.mode & S_IFMT) {
    case S_IFREG:
      return FileFault(descriptor);
    case S_IFIFO:
      return {};
    case S_IFCHR:
      return IsHarmless(descriptor) ? "" : "is a device that is no terminal";
    case S_IFBLK:
      return "is a disk";
    case S_IFDIR:
      return "is a directory, by which a cell would reach what is outside";
    case S_IFSOCK:
      if (landlock || !descriptor.receives) return {};
      return "is a socket, by which descriptors of the host can come into the cell, and there is "
             "no Landlock here to keep them from being used";
    default:
      return "is no file, pipe or terminal";
  }
}

}  // namespace taskcell::cell

#include "launcher/native/mount_table.h"

#include <fcntl.h>

#include <string_view>

#include "launcher/base/text.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/cell/kernel_file_systems.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/self.h"

namespace taskcell::native {
namespace {

Error Refused(const std::string& path, const std::string& where, std::string_view type) {
  return Error(Kind::kViolation,
               Text("'", Printable(where), "' is on a file system of the kernel's own (", type,
                    "): those are never shown to a cell. Mount something without it",
                    where == path ? "" : Text(", such as parts of '", Printable(path), "'")));
}

}  // namespace

Result<MountTable> MountTable::Read() {
  std::string text = TRY(sys::ReadProc("self/mountinfo", kMaxMountInfoBytes));
  return MountTable(TRY(ParseMountInfo(text)));
}

Status MountTable::CheckShown(int fd, const std::string& path) const {
  uint64_t magic = TRY(sys::FileSystemOf(fd)).type;
  std::string_view type = cell::KernelFileSystemType(magic);
  if (!type.empty()) return Refused(path, path, type);
  for (const MountInfoLine& line : lines_) {
    bool below = path == "/" || cell::IsAtOrBelow(line.mount_point, path);
    if (!below || line.mount_point == path) continue;  // at it is what was just looked at
    if (cell::IsKernelFileSystem(line.type)) return Refused(path, line.mount_point, line.type);
  }
  return Ok();
}

}  // namespace taskcell::native

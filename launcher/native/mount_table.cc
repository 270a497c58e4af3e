#include "launcher/native/mount_table.h"

#include <fcntl.h>
#include <linux/magic.h>

#include <algorithm>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::native {
namespace {

// The type as fstatfs(2) has it: those that <linux/magic.h> lacks.
constexpr uint64_t kConfigMagic = 0x62656570;
constexpr uint64_t kFuseControlMagic = 0x65735543;
constexpr uint64_t kRpcPipeMagic = 0x67596969;
constexpr uint64_t kNfsdMagic = 0x6e667364;
constexpr uint64_t kMessageQueueMagic = 0x19800202;

struct KernelFileSystem {
  std::string_view type;
  uint64_t magic;
};
constexpr KernelFileSystem kKernels[] = {
    {"proc", PROC_SUPER_MAGIC},
    {"sysfs", SYSFS_MAGIC},
    {"cgroup", CGROUP_SUPER_MAGIC},
    {"cgroup2", CGROUP2_SUPER_MAGIC},
    {"resctrl", RDTGROUP_SUPER_MAGIC},
    {"debugfs", DEBUGFS_MAGIC},
    {"tracefs", TRACEFS_MAGIC},
    {"bpf", BPF_FS_MAGIC},
    {"securityfs", SECURITYFS_MAGIC},
    {"selinuxfs", SELINUX_MAGIC},
    {"smackfs", SMACK_MAGIC},
    {"configfs", kConfigMagic},
    {"efivarfs", EFIVARFS_MAGIC},
    {"pstore", PSTOREFS_MAGIC},
    {"binfmt_misc", BINFMTFS_MAGIC},
    {"nsfs", NSFS_MAGIC},
    {"fusectl", kFuseControlMagic},
    {"rpc_pipefs", kRpcPipeMagic},
    {"nfsd", kNfsdMagic},
    {"mqueue", kMessageQueueMagic},  // queues are plain files there, and a way to others
    {"hugetlbfs", HUGETLBFS_MAGIC},  // memory that no memory limit counts
};

Error Refused(const std::string& path, const std::string& where, std::string_view type) {
  return Error(Kind::kViolation,
               Text("'", Printable(where), "' is on a file system of the kernel's own (", type,
                    "): those are never shown to a cell. Mount something without it",
                    where == path ? "" : Text(", such as parts of '", Printable(path), "'")));
}

}  // namespace

Result<MountTable> MountTable::Read() {
  std::string text = TRY(sys::ReadFile(AT_FDCWD, "/proc/self/mountinfo", kMaxMountInfoBytes));
  return MountTable(TRY(ParseMountInfo(text)));
}

Status MountTable::CheckShown(int fd, const std::string& path) const {
  uint64_t magic = TRY(sys::FileSystemOf(fd)).type;
  for (const KernelFileSystem& kernel : kKernels) {
    if (magic == kernel.magic) return Refused(path, path, kernel.type);
  }
  for (const MountInfoLine& line : lines_) {
    bool below = path == "/" || cell::IsAtOrBelow(line.mount_point, path);
    if (!below || line.mount_point == path) continue;  // at it is what was just looked at
    auto found = std::find_if(std::begin(kKernels), std::end(kKernels),
                              [&](const auto& kernel) { return kernel.type == line.type; });
    if (found != std::end(kKernels)) return Refused(path, line.mount_point, found->type);
  }
  return Ok();
}

}  // namespace taskcell::native

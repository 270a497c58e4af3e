#include "launcher/cell/kernel_file_systems.h"

#include <linux/magic.h>

#include <algorithm>

namespace taskcell::cell {
namespace {

// Those that <linux/magic.h> lacks.
constexpr uint64_t kConfigMagic = 0x62656570;
constexpr uint64_t kFuseControlMagic = 0x65735543;
constexpr uint64_t kRpcPipeMagic = 0x67596969;
constexpr uint64_t kNfsdMagic = 0x6e667364;
constexpr uint64_t kMessageQueueMagic = 0x19800202;
constexpr uint64_t kPidMagic = 0x50494446;

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
    {"pidfd", kPidMagic},            // of newer kernels: a plain file
    {"hugetlbfs", HUGETLBFS_MAGIC},  // memory that no memory limit counts
};

}  // namespace

std::string_view KernelFileSystemType(uint64_t magic) {
  for (const KernelFileSystem& kernel : kKernels) {
    if (kernel.magic == magic) return kernel.type;
  }
  return {};
}

bool IsKernelFileSystem(std::string_view type) {
  return std::any_of(std::begin(kKernels), std::end(kKernels),
                     [&](const auto& kernel) { return kernel.type == type; });
}

}  // namespace taskcell::cell

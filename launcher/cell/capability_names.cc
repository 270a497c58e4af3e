#include "launcher/cell/capability_names.h"

#include <iterator>

namespace taskcell::cell {
namespace {

// By bit, as linux/capability.h numbers them. Our own: libcap's would bring stdio and locale into
// each static program.
constexpr const char* kNames[] = {
    "cap_chown",
    "cap_dac_override",
    "cap_dac_read_search",
    "cap_fowner",
    "cap_fsetid",
    "cap_kill",
    "cap_setgid",
    "cap_setuid",
    "cap_setpcap",
    "cap_linux_immutable",
    "cap_net_bind_service",
    "cap_net_broadcast",
    "cap_net_admin",
    "cap_net_raw",
    "cap_ipc_lock",
    "cap_ipc_owner",
    "cap_sys_module",
    "cap_sys_rawio",
    "cap_sys_chroot",
    "cap_sys_ptrace",
    "cap_sys_pacct",
    "cap_sys_admin",
    "cap_sys_boot",
    "cap_sys_nice",
    "cap_sys_resource",
    "cap_sys_time",
    "cap_sys_tty_config",
    "cap_mknod",
    "cap_lease",
    "cap_audit_write",
    "cap_audit_control",
    "cap_setfcap",
    "cap_mac_override",
    "cap_mac_admin",
    "cap_syslog",
    "cap_wake_alarm",
    "cap_block_suspend",
    "cap_audit_read",
    "cap_perfmon",
    "cap_bpf",
    "cap_checkpoint_restore",
};
constexpr unsigned kBits = 64;

}  // namespace

std::string CapabilityNames(uint64_t set) {
  std::string names;
  for (unsigned bit = 0; bit < kBits; ++bit) {
    if ((set >> bit & 1U) == 0) continue;
    names += names.empty() ? "" : " ";
    names += bit < std::size(kNames) ? kNames[bit] : std::to_string(bit);
  }
  return names;
}

}  // namespace taskcell::cell

#include "seccomp/call_numbers.h"

#include <seccomp.h>

#include <string_view>

namespace taskcell::seccomp {
namespace {

// Calls that libseccomp 2.5 does not know. Since 5.1 a new call has one number everywhere
// (scripts/syscall.tbl of the kernel).
struct NewCall {
  std::string_view name;
  uint32_t number;
};
constexpr NewCall kNewCalls[] = {
    {"cachestat", 451},         {"fchmodat2", 452},        {"map_shadow_stack", 453},
    {"futex_wake", 454},        {"futex_wait", 455},       {"futex_requeue", 456},
    {"statmount", 457},         {"listmount", 458},        {"lsm_get_self_attr", 459},
    {"lsm_set_self_attr", 460}, {"lsm_list_modules", 461}, {"mseal", 462},
    {"setxattrat", 463},        {"getxattrat", 464},       {"listxattrat", 465},
    {"removexattrat", 466},     {"open_tree_attr", 467},   {"file_getattr", 468},
    {"file_setattr", 469},
};

std::optional<uint32_t> NewCallNumber(std::string_view name) {
  for (const NewCall& call : kNewCalls) {
    if (call.name == name) return call.number;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint32_t> CallNumber(Architecture architecture, const std::string& name) {
  if (std::optional<uint32_t> number = NewCallNumber(name)) return number;
  uint32_t token = architecture == Architecture::kX86_64 ? uint32_t{SCMP_ARCH_X86_64}
                                                         : uint32_t{SCMP_ARCH_AARCH64};
  int number = seccomp_syscall_resolve_name_arch(token, name.c_str());
  if (number < 0) return std::nullopt;  // negative: a call of other architectures only, or unknown
  return static_cast<uint32_t>(number);
}

bool IsCallName(const std::string& name) {
  return NewCallNumber(name).has_value() ||
         seccomp_syscall_resolve_name(name.c_str()) != __NR_SCMP_ERROR;
}

}  // namespace taskcell::seccomp

#include "tests/support/syscall_faults.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

namespace taskcell::test {
namespace {

struct sock_filter Load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}

struct sock_filter SkipUnless(uint32_t value, uint8_t count) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count);
}

}  // namespace

bool InstallFaults(const std::vector<SyscallFault>& faults) {
  std::vector<struct sock_filter> code;
  for (const SyscallFault& fault : faults) {
    code.push_back(Load(offsetof(struct seccomp_data, nr)));
    code.push_back(SkipUnless(static_cast<uint32_t>(fault.number), fault.argument < 0 ? 1 : 3));
    if (fault.argument >= 0) {
      std::size_t low = offsetof(struct seccomp_data, args) +
                        static_cast<std::size_t>(fault.argument) * sizeof(uint64_t);
      code.push_back(Load(low));
      code.push_back(SkipUnless(fault.value, 1));
    }
    const uint32_t verdict = fault.err == kKills
                                 ? SECCOMP_RET_KILL_PROCESS
                                 : SECCOMP_RET_ERRNO | static_cast<uint32_t>(fault.err);
    code.push_back(BPF_STMT(BPF_RET | BPF_K, verdict));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  struct sock_fprog program = {static_cast<unsigned short>(code.size()), code.data()};
  if (::geteuid() != 0 && ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

}  // namespace taskcell::test

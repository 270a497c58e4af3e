#include "launcher/sys/seccomp_install.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

namespace taskcell::sys {

Status InstallSeccomp(const sock_filter* code, unsigned short length) {
  // The kernel only reads the program; its interface predates const.
  sock_fprog program = {length, const_cast<sock_filter*>(code)};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0U, &program) < 0) {
    return Failure(Text("seccomp SECCOMP_SET_MODE_FILTER (", length, " instructions)"));
  }
  return Ok();
}

Result<int> SeccompMode() {
  int mode = ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
  if (mode < 0) return Failure("prctl PR_GET_SECCOMP");
  return mode;
}

}  // namespace taskcell::sys

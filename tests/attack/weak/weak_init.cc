// In place of what taskcell-init calls to confine the job and to hide itself. Linked over the real
// functions (--wrap).
#include <fcntl.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/init/denied_attempts.h"

#define WEAK_EXECUTE(prefix)                                                                       \
  prefix                                                                                           \
      "_ZN8taskcell3sys7ExecuteERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEERKSt6vector" \
      "IS6_SaIS6_EESD_"

namespace taskcell::test {

Status InstallNoFilter(const sock_filter* code, unsigned short length) __asm__(
    "__wrap__ZN8taskcell3sys14InstallSeccompEPK11sock_filtert");
Status InstallNoFilter(const sock_filter* /*code*/, unsigned short /*length*/) { return Ok(); }

Status RestrictNothing(int ruleset) __asm__("__wrap__ZN8taskcell3sys12RestrictSelfEi");
Status RestrictNothing(int /*ruleset*/) { return Ok(); }

Status AllowNewPrivileges() __asm__("__wrap__ZN8taskcell3sys18SetNoNewPrivilegesEv");
Status AllowNewPrivileges() { return Ok(); }

Status StayDumpable() __asm__("__wrap__ZN8taskcell3sys14SetNotDumpableEv");
Status StayDumpable() { return Ok(); }

// The witness becomes the job: nothing it tries may succeed before.
Result<init::Attempted>
TryNothing(std::string_view name, std::span<const sock_filter> filter) __asm__(
    "__wrap__ZN8taskcell4init17AttemptDeniedCallESt17basic_string_viewIcSt11char_traitsIcEE"
    "St4spanIK11sock_filterLm18446744073709551615EE");
Result<init::Attempted> TryNothing(std::string_view /*name*/,
                                   std::span<const sock_filter> /*filter*/) {
  return init::Attempted{EPERM, 0};
}

// As a runtime did that left a directory of the host open (CVE-2024-21626), and a socket.
Error RealExecute(const std::string& path, const std::vector<std::string>& argv,
                  const std::vector<std::string>& environment) __asm__(WEAK_EXECUTE("__real_"));
Error LeakAndExecute(const std::string& path, const std::vector<std::string>& argv,
                     const std::vector<std::string>& environment) __asm__(WEAK_EXECUTE("__wrap_"));
Error LeakAndExecute(const std::string& path, const std::vector<std::string>& argv,
                     const std::vector<std::string>& environment) {
  int leaked[2];
  (void)::open("/", O_PATH | O_DIRECTORY);  // NOLINT(android-cloexec-open): the leak
  // NOLINTNEXTLINE(android-cloexec-socket): the leak
  (void)::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, leaked);
  return RealExecute(path, argv, environment);
}

}  // namespace taskcell::test

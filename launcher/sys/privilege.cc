#include "launcher/sys/privilege.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/socket.h"

namespace taskcell::sys {
namespace {

constexpr unsigned long kSecurebits =
    SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | SECBIT_KEEP_CAPS_LOCKED;
constexpr unsigned long kMostCapabilities = 64;  // a capability set has 64 bits

}  // namespace

Status SetNotDumpable() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) return Failure("prctl PR_SET_DUMPABLE 0");
  return Ok();
}

Status SetNoNewPrivileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) return Failure("prctl PR_SET_NO_NEW_PRIVS");
  return Ok();
}

Result<bool> HasNoNewPrivileges() {
  int answer = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
  if (answer < 0) return Failure("prctl PR_GET_NO_NEW_PRIVS");
  return answer != 0;
}

Status SetParentDeathSignal(int signal) {
  if (::prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) < 0) return Failure("prctl PR_SET_PDEATHSIG");
  return Ok();
}

Status LockSecurebits() {
  if (::prctl(PR_SET_SECUREBITS, kSecurebits, 0, 0, 0) < 0)
    return Failure("prctl PR_SET_SECUREBITS");
  return Ok();
}

Result<uint32_t> Securebits() {
  int bits = ::prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
  if (bits < 0) return Failure("prctl PR_GET_SECUREBITS");
  return static_cast<uint32_t>(bits);
}

Status DropBoundingSet() {
  for (unsigned long capability = 0; capability < kMostCapabilities; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    int err = errno;
    if (err == EINVAL && capability > 0) return Ok();  // one past the last the kernel knows
    return FailureOf(err, Text("prctl PR_CAPBSET_DROP ", capability));
  }
  return Ok();
}

Status DropCapabilities() {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
    return Failure("prctl PR_CAP_AMBIENT_CLEAR_ALL");
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) < 0) return Failure("capset to none");
  return Ok();
}

Status SetGroups(std::span<const gid_t> groups) {
  if (::syscall(SYS_setgroups, groups.size(), groups.data()) < 0)
    return Failure(Text("setgroups (", groups.size(), " groups)"));
  return Ok();
}

Result<std::vector<gid_t>> GetGroups() {
  int count = ::getgroups(0, nullptr);
  if (count < 0) return Failure("getgroups");
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  count = ::getgroups(count, groups.data());
  if (count < 0) return Failure("getgroups");
  groups.resize(static_cast<std::size_t>(count));
  return groups;
}

Status SetIds(uid_t uid, gid_t gid) {
  if (::syscall(SYS_setresgid, gid, gid, gid) < 0) return Failure(Text("setresgid ", gid));
  if (::syscall(SYS_setresuid, uid, uid, uid) < 0) return Failure(Text("setresuid ", uid));
  return Ok();
}

Status JoinNewSessionKeyring() {
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0)
    return Failure("keyctl JOIN_SESSION_KEYRING");
  return Ok();
}

Result<SessionKeyring> FindSessionKeyring() {
  long serial = ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
  if (serial < 0) return Failure("keyctl GET_KEYRING_ID");
  SessionKeyring found;
  found.serial = static_cast<int32_t>(serial);
  // "type;uid;gid;permissions;description"
  std::array<char, 4096> text = {};
  long length = ::syscall(SYS_keyctl, KEYCTL_DESCRIBE, serial, text.data(), text.size() - 1);
  if (length < 0) return Failure(Text("keyctl DESCRIBE ", serial));
  std::string_view whole = text.data();
  found.description = whole.substr(whole.rfind(';') + 1);
  return found;
}

Status SetHostname(std::string_view name) {
  if (::sethostname(name.data(), name.size()) < 0)
    return Failure(Text("sethostname '", Printable(name), "'"));
  return Ok();
}

Status SetLoopbackUp() {
  UniqueFd socket = TRY(MakeSocket(AF_INET, SOCK_DGRAM));
  struct ifreq request = {};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) < 0) return Failure("ioctl SIOCSIFFLAGS lo up");
  return Ok();
}

}  // namespace taskcell::sys

#include "launcher/native/namespace_fault.h"

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::native {
namespace {

constexpr std::size_t kMaxSysctlBytes = 4096;
constexpr std::string_view kCode = "namespaces_unavailable";

std::optional<uint64_t> Sysctl(const std::string& path) {
  Result<std::string> text = sys::ReadFile(AT_FDCWD, "/proc/sys/" + path, kMaxSysctlBytes);
  if (!text.ok()) return std::nullopt;
  return ParseUnsigned(Trim(text.value()));
}

Error Explained(std::string text, int err) {
  return Error(Kind::kUnsupported, std::move(text), err).Coded(kCode);
}

// ENOSPC (EUSERS on old kernels): a limit on namespaces, of this user namespace or one above.
Error ExplainLimit(int err) {
  for (const char* kind : {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"}) {
    if (Sysctl(Text("user/max_", kind, "_namespaces")) != 0U) continue;
    return Explained(Text("namespaces are switched off here: user.max_", kind,
                          "_namespaces is 0. The administrator must raise it: sysctl -w user.max_",
                          kind, "_namespaces=15000"),
                     err);
  }
  std::optional<uint64_t> limit = Sysctl("user/max_user_namespaces");
  return Explained(
      Text(
          "no more namespaces can be made: the limit (user.max_user_namespaces is ",
          limit ? std::to_string(*limit) : "unreadable",
          ") is used up, here or in an outer namespace, or user namespaces are nested 32 deep. End "
          "what uses them, or ask the administrator to raise the limit"),
      err);
}

}  // namespace

Error ExplainNamespaceFault(Error error) {
  if (error.err == ENOSPC || error.err == EUSERS) return ExplainLimit(error.err);
  if (error.err == EAGAIN) {
    error.text +=
        "; no further process can be made: this user's limit on processes (RLIMIT_NPROC, `ulimit "
        "-u`) or the pids limit of a cgroup above is used up. End some, or let whoever set it "
        "raise it";
    return error;
  }
  if (error.err != EPERM && error.err != EACCES) return error;
  if (Sysctl("kernel/unprivileged_userns_clone") == 0U) {
    return Explained(
        "user namespaces are switched off for ordinary users: kernel.unprivileged_userns_clone is "
        "0. The administrator must set it to 1: sysctl -w kernel.unprivileged_userns_clone=1",
        error.err);
  }
  if (Sysctl("kernel/apparmor_restrict_unprivileged_userns") == 1U) {
    error.text +=
        "; AppArmor restricts user namespaces here (kernel.apparmor_restrict_unprivileged_userns "
        "is 1): the administrator must install an AppArmor profile for this program that grants "
        "'userns,', or set the sysctl to 0";
    return std::move(error).Coded(kCode);
  }
  error.text +=
      "; something refuses this step to you: a seccomp filter or security module of whatever "
      "started this process (a container, a unit with RestrictNamespaces= or SystemCallFilter=), "
      "or a root directory changed by chroot";
  return std::move(error).Coded(kCode);
}

}  // namespace taskcell::native

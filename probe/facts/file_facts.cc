#include "probe/facts/file_facts.h"

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kMaxFileBytes = 256U << 10U;

constexpr std::string_view kPaths[] = {
    kStatus,
    kMaxUserNamespaces,
    kUnprivilegedClone,
    kAppArmorRestriction,
    kOwnProfile,
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/yama/ptrace_scope",
    "/proc/sys/kernel/unprivileged_bpf_disabled",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/random/entropy_avail",
    "/proc/sys/fs/protected_symlinks",
    "/proc/sys/fs/protected_hardlinks",
    "/proc/sys/fs/protected_fifos",
    "/proc/sys/fs/protected_regular",
    "/proc/self/uid_map",
    "/proc/self/setgroups",
    "/proc/swaps",
    "/proc/filesystems",
    "/sys/kernel/security/lsm",
    "/sys/fs/selinux/enforce",
    "/etc/os-release",
    "/usr/lib/os-release",
};

}  // namespace

const sys::FileSeen& FileFacts::File(std::string_view path) const {
  static const sys::FileSeen kAbsent;
  for (const auto& [each, seen] : files_) {
    if (each == path) return seen;
  }
  return kAbsent;
}

std::string_view FileFacts::Line(std::string_view path) const { return Trim(File(path).text); }

std::optional<uint64_t> FileFacts::Number(std::string_view path) const {
  return ParseUnsigned(Line(path));
}

FileFacts ReadFileFacts(sys::FileTree& tree) {
  FileFacts facts;
  for (std::string_view path : kPaths) {
    std::string name(path);
    facts.Add(name, tree.Read(name, kMaxFileBytes));
  }
  return facts;
}

std::string_view FieldOf(std::string_view text, std::string_view key) {
  for (std::string_view line : Split(text, '\n')) {
    if (line.starts_with(key) && line.substr(key.size()).starts_with(':'))
      return Trim(line.substr(key.size() + 1));
  }
  return {};
}

}  // namespace taskcell::probe

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/sys/file_tree.h"

namespace taskcell::probe {

// Single files of a host that a rule looks at, by their paths.
class FileFacts {
 public:
  void Add(std::string path, sys::FileSeen seen) {
    files_.emplace_back(std::move(path), std::move(seen));
  }
  // A file that was never looked for is absent.
  const sys::FileSeen& File(std::string_view path) const;
  // The text without white space at its ends; "" where it could not be read.
  std::string_view Line(std::string_view path) const;
  // A file that holds one number.
  std::optional<uint64_t> Number(std::string_view path) const;

 private:
  std::vector<std::pair<std::string, sys::FileSeen>> files_;
};

inline constexpr std::string_view kStatus = "/proc/self/status";
inline constexpr std::string_view kMaxUserNamespaces = "/proc/sys/user/max_user_namespaces";
inline constexpr std::string_view kUnprivilegedClone = "/proc/sys/kernel/unprivileged_userns_clone";
inline constexpr std::string_view kAppArmorRestriction =
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
inline constexpr std::string_view kOwnProfile = "/proc/self/attr/current";

// Reads every file of the table that is not the matter of a family of its own: the kernel's and the
// distribution's names, sysctls, what a process knows of itself, security modules, swap.
FileFacts ReadFileFacts(sys::FileTree& tree);

// The value after "Key:" in a text of such lines, as /proc/<pid>/status has them. Pure.
std::string_view FieldOf(std::string_view text, std::string_view key);

}  // namespace taskcell::probe

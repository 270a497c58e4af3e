#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell {

// One line of /proc/<pid>/mountinfo (proc(5)), octal escapes undone.
struct MountInfoLine {
  uint64_t id = 0;
  uint64_t parent = 0;
  uint32_t major = 0;  // st_dev of the files on it
  uint32_t minor = 0;
  std::string root;                          // the directory of the file system that is mounted
  std::string mount_point;                   // as seen from the reader's root
  std::string options;                       // of this mount, comma-separated
  std::vector<std::string> optional_fields;  // "shared:4", "master:2", ...
  std::string type;
  std::string source;
  std::string super_options;  // of the file system, comma-separated
};

// Most bytes of a mountinfo file that are looked at: some 20,000 mounts.
inline constexpr std::size_t kMaxMountInfoBytes = 4U << 20U;

// Parses a whole mountinfo file. A line that is not as proc(5) says, or more than
// kMaxMountInfoBytes, is an Error of kind kViolation that names the line. Pure.
Result<std::vector<MountInfoLine>> ParseMountInfo(std::string_view text);

// True when the comma-separated `options` hold `name` as a whole word. Pure.
bool HasMountOption(std::string_view options, std::string_view name);

}  // namespace taskcell

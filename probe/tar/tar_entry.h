#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace taskcell::probe {

// One regular file of an archive.
struct TarEntry {
  std::string path;  // relative: no leading slash, no empty, "." or ".." component
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  // Of the file system it was on. Stands in the fields that ustar has for device nodes, which no
  // program looks at in a regular file.
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  std::string_view content;  // of the archive's bytes, or the caller's
};

// The longest path, written or read.
inline constexpr std::size_t kMaxTarPathBytes = 16U << 10U;

// True where `path` is one that an archive may hold: see TarEntry. Pure.
bool IsArchivePath(std::string_view path);

}  // namespace taskcell::probe

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::probe {

// Writes one archive in the POSIX ustar format, in memory: every entry owned by root, times 0, so
// that the same content always makes the same bytes.
class TarWriter {
 public:
  // `path` has no leading slash and at most 100 bytes; kUsage otherwise.
  Status AddDirectory(std::string_view path, uint32_t mode);
  Status AddFile(std::string_view path, uint32_t mode, std::string_view content);

  // The whole archive with its end.
  std::string Finish() &&;

 private:
  Status AddHeader(std::string_view path, uint32_t mode, uint64_t size, char type);

  std::string bytes_;
};

}  // namespace taskcell::probe

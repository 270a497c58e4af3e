#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "probe/tar/tar_entry.h"

namespace taskcell::probe {

// Writes one archive in the POSIX ustar format, in memory, all times 0, so that the same content
// always makes the same bytes. What a ustar header cannot hold (a path of more than 100 bytes, an
// id of more than seven octal digits) goes into a pax header before it.
class TarWriter {
 public:
  // A directory or file of root's. A path that IsArchivePath refuses is kUsage.
  Status AddDirectory(std::string_view path, uint32_t mode);
  Status AddFile(std::string_view path, uint32_t mode, std::string_view content);

  // A file with its owner; kUsage where the path, or the size or device, does not fit.
  Status Add(const TarEntry& entry);

  // The whole archive with its end.
  std::string Finish() &&;

 private:
  Status AddEntry(const TarEntry& entry, char type);
  void AddExtended(std::string_view records);
  void AddContent(std::string_view content);

  std::string bytes_;
};

}  // namespace taskcell::probe

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"

namespace taskcell::cell {

// Where a job leaves files that are to outlive its cell.
inline constexpr char kExportDirectory[] = "/workspace/out";

// Bounds of one export: init keeps them, and whoever takes it holds init to them.
inline constexpr std::size_t kMaxExportFiles = 1000;
inline constexpr std::size_t kMaxExportEntries = 4000;  // with directories and what is left out
inline constexpr uint64_t kMaxExportBytes = uint64_t{256} << 20U;
inline constexpr std::size_t kMaxExportDepth = 8;  // names in a path
inline constexpr std::size_t kMaxExportNameBytes = 255;
inline constexpr std::size_t kMaxExportPathBytes = 1024;

// One regular file, whose bytes come next.
struct ExportFile {
  std::string path;  // below kExportDirectory, relative
  uint64_t bytes = 0;
};
std::string EncodeExportFile(const ExportFile& file);
// What is malformed, not a path that can be used (CheckExportPath) or too large is kViolation.
Result<ExportFile> ParseExportFile(std::string_view payload);

// Refuses everything but names joined by '/': none is empty, "." or "..", none has more than
// kMaxExportNameBytes, a control byte or bytes that are not UTF-8, and they are at most
// kMaxExportDepth and together kMaxExportPathBytes. Pure.
Status CheckExportPath(std::string_view path);

// What ends an export.
struct ExportEnd {
  bool is_complete = false;
  uint32_t left_out = 0;  // links, hard links, sockets and the like
  std::string text;       // why it is not complete
};
std::string EncodeExportEnd(const ExportEnd& end);
Result<ExportEnd> ParseExportEnd(std::string_view payload);

}  // namespace taskcell::cell

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "probe/tar/tar_entry.h"

// The POSIX pax and ustar interchange formats (pax(1p)), as the writer and the reader share them.
namespace taskcell::probe::tar {

inline constexpr std::size_t kBlockBytes = 512;
inline constexpr std::size_t kNameBytes = 100;

// A field of a header block: where it begins and how wide it is.
struct Field {
  std::size_t offset;
  std::size_t width;
};
inline constexpr Field kName = {0, kNameBytes};
inline constexpr Field kMode = {100, 8};
inline constexpr Field kUid = {108, 8};
inline constexpr Field kGid = {116, 8};
inline constexpr Field kSize = {124, 12};
inline constexpr Field kTime = {136, 12};
inline constexpr Field kChecksum = {148, 8};
inline constexpr Field kType = {156, 1};
inline constexpr Field kMagic = {257, 8};
inline constexpr Field kMajor = {329, 8};
inline constexpr Field kMinor = {337, 8};
inline constexpr Field kPrefix = {345, 155};

inline constexpr std::string_view kUstar{"ustar\00000", 8};
inline constexpr char kFile = '0';
inline constexpr char kDirectory = '5';
inline constexpr char kExtended = 'x';  // records for the next header: what its fields cannot hold

using Block = std::array<char, kBlockBytes>;

// The largest number of a field: octal digits, the last byte is NUL.
constexpr uint64_t LargestIn(Field field) { return (uint64_t{1} << 3U * (field.width - 1)) - 1; }

// The sum of a header's bytes, its own field counted as spaces.
uint64_t ChecksumOf(const Block& block);

}  // namespace taskcell::probe::tar

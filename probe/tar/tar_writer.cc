#include "probe/tar/tar_writer.h"

#include <array>
#include <cstring>

#include "launcher/base/text.h"

namespace taskcell::probe {
namespace {

constexpr std::size_t kBlockBytes = 512;
constexpr std::size_t kMaxNameBytes = 100;
constexpr uint64_t kMaxSize = (uint64_t{1} << 33U) - 1;  // eleven octal digits

// Offsets and widths of the fields that are written (POSIX pax, ustar interchange format).
constexpr std::size_t kMode = 100;
constexpr std::size_t kUid = 108;
constexpr std::size_t kGid = 116;
constexpr std::size_t kSize = 124;
constexpr std::size_t kTime = 136;
constexpr std::size_t kChecksum = 148;
constexpr std::size_t kType = 156;
constexpr std::size_t kMagic = 257;
constexpr char kUstar[] =
    "ustar\0"
    "00";

using Block = std::array<char, kBlockBytes>;

// Octal digits in `width` - 1 places; the last stays NUL.
void PutOctal(Block& block, std::size_t offset, std::size_t width, uint64_t value) {
  for (std::size_t at = offset + width - 1; at-- > offset; value >>= 3U)
    block[at] = static_cast<char>('0' + (value & 7U));
}

}  // namespace

Status TarWriter::AddHeader(std::string_view path, uint32_t mode, uint64_t size, char type) {
  if (path.empty() || path.size() > kMaxNameBytes || path.front() == '/' || size > kMaxSize)
    return Error(Kind::kUsage, Text("'", Printable(path), "' does not fit into a tar archive"));
  Block block = {};
  std::memcpy(block.data(), path.data(), path.size());
  PutOctal(block, kMode, 8, mode);
  PutOctal(block, kUid, 8, 0);
  PutOctal(block, kGid, 8, 0);
  PutOctal(block, kSize, 12, size);
  PutOctal(block, kTime, 12, 0);
  block[kType] = type;
  std::memcpy(block.data() + kMagic, kUstar, sizeof kUstar - 1);
  // Its own field counts as spaces.
  std::memset(block.data() + kChecksum, ' ', 8);
  uint64_t sum = 0;
  for (char byte : block) sum += static_cast<unsigned char>(byte);
  PutOctal(block, kChecksum, 7, sum);
  bytes_.append(block.data(), block.size());
  return Ok();
}

Status TarWriter::AddDirectory(std::string_view path, uint32_t mode) {
  return AddHeader(path, mode, 0, '5');
}

Status TarWriter::AddFile(std::string_view path, uint32_t mode, std::string_view content) {
  TRY(AddHeader(path, mode, content.size(), '0'));
  bytes_ += content;
  bytes_.resize((bytes_.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes, '\0');
  return Ok();
}

std::string TarWriter::Finish() && {
  bytes_.append(2 * kBlockBytes, '\0');
  return std::move(bytes_);
}

}  // namespace taskcell::probe

#include "probe/tar/tar_format.h"

#include "launcher/base/text.h"

namespace taskcell::probe {

bool IsArchivePath(std::string_view path) {
  if (path.empty() || path.size() > kMaxTarPathBytes || path.find('\0') != path.npos) return false;
  for (std::string_view part : Split(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
  }
  return true;
}

uint64_t tar::ChecksumOf(const Block& block) {
  uint64_t sum = 0;
  for (std::size_t at = 0; at < block.size(); ++at) {
    bool own = at >= kChecksum.offset && at < kChecksum.offset + kChecksum.width;
    sum += own ? static_cast<unsigned char>(' ') : static_cast<unsigned char>(block[at]);
  }
  return sum;
}

}  // namespace taskcell::probe

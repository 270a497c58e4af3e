#include "probe/tar/tar_writer.h"

#include <algorithm>
#include <cstring>

#include "launcher/base/text.h"
#include "probe/tar/tar_format.h"

namespace taskcell::probe {
namespace {

using tar::Block;
using tar::Field;

void PutOctal(Block& block, Field field, uint64_t value) {
  for (std::size_t at = field.offset + field.width - 1; at-- > field.offset; value >>= 3U)
    block[at] = static_cast<char>('0' + (value & 7U));
}

// The bytes that fit.
void PutText(Block& block, Field field, std::string_view text) {
  std::memcpy(block.data() + field.offset, text.data(), std::min(text.size(), field.width));
}

// "LENGTH KEY=VALUE\n", where LENGTH counts itself too.
std::string Record(std::string_view key, std::string_view value) {
  std::string rest = Text(' ', key, '=', value, '\n');
  std::size_t length = rest.size();
  while (length != rest.size() + std::to_string(length).size())
    length = rest.size() + std::to_string(length).size();
  return Text(length, rest);
}

Block HeaderOf(const TarEntry& entry, char type) {
  Block block = {};
  PutText(block, tar::kName, entry.path);
  PutOctal(block, tar::kMode, entry.mode);
  PutOctal(block, tar::kUid, entry.uid);
  PutOctal(block, tar::kGid, entry.gid);
  PutOctal(block, tar::kSize, entry.content.size());
  PutOctal(block, tar::kTime, 0);
  PutText(block, tar::kType, {&type, 1});
  PutText(block, tar::kMagic, tar::kUstar);
  PutOctal(block, tar::kMajor, entry.device_major);
  PutOctal(block, tar::kMinor, entry.device_minor);
  // Six digits, a NUL, and the space that counted.
  block[tar::kChecksum.offset + tar::kChecksum.width - 1] = ' ';
  PutOctal(block, {tar::kChecksum.offset, tar::kChecksum.width - 1}, tar::ChecksumOf(block));
  return block;
}

// What does not fit the header's own fields.
std::string ExtendedRecords(const TarEntry& entry) {
  std::string records;
  if (entry.path.size() > tar::kNameBytes) records += Record("path", entry.path);
  if (entry.uid > tar::LargestIn(tar::kUid)) records += Record("uid", std::to_string(entry.uid));
  if (entry.gid > tar::LargestIn(tar::kGid)) records += Record("gid", std::to_string(entry.gid));
  return records;
}

}  // namespace

void TarWriter::AddContent(std::string_view content) {
  bytes_ += content;
  bytes_.resize((bytes_.size() + tar::kBlockBytes - 1) / tar::kBlockBytes * tar::kBlockBytes, '\0');
}

void TarWriter::AddExtended(std::string_view records) {
  TarEntry extended;
  extended.path = "pax";
  extended.mode = 0600;
  extended.content = records;
  Block block = HeaderOf(extended, tar::kExtended);
  bytes_.append(block.data(), block.size());
  AddContent(records);
}

Status TarWriter::AddEntry(const TarEntry& entry, char type) {
  bool fits = entry.content.size() <= tar::LargestIn(tar::kSize) &&
              entry.mode <= tar::LargestIn(tar::kMode) &&
              entry.device_major <= tar::LargestIn(tar::kMajor) &&
              entry.device_minor <= tar::LargestIn(tar::kMinor);
  if (!fits || !IsArchivePath(entry.path))
    return Error(Kind::kUsage, Text("'", Printable(entry.path), "' does not fit into an archive"));
  std::string records = ExtendedRecords(entry);
  if (!records.empty()) AddExtended(records);
  Block block = HeaderOf(entry, type);
  bytes_.append(block.data(), block.size());
  AddContent(entry.content);
  return Ok();
}

Status TarWriter::Add(const TarEntry& entry) { return AddEntry(entry, tar::kFile); }

Status TarWriter::AddDirectory(std::string_view path, uint32_t mode) {
  TarEntry entry;
  entry.path = path;
  entry.mode = mode;
  return AddEntry(entry, tar::kDirectory);
}

Status TarWriter::AddFile(std::string_view path, uint32_t mode, std::string_view content) {
  TarEntry entry;
  entry.path = path;
  entry.mode = mode;
  entry.content = content;
  return Add(entry);
}

std::string TarWriter::Finish() && {
  bytes_.append(2 * tar::kBlockBytes, '\0');
  return std::move(bytes_);
}

}  // namespace taskcell::probe

#include "probe/tar/tar_reader.h"

#include <cstring>
#include <optional>
#include <set>

#include "launcher/base/text.h"
#include "probe/tar/tar_format.h"

namespace taskcell::probe {
namespace {

using tar::Block;
using tar::Field;

// A path and two numbers, with their lengths and keys.
constexpr std::size_t kMaxExtendedBytes = kMaxTarPathBytes + 128;

Error Refuse(std::string_view what) { return Error(Kind::kViolation, std::string(what)); }

std::string_view TextIn(const Block& block, Field field) {
  std::string_view text(block.data() + field.offset, field.width);
  return text.substr(0, text.find('\0'));
}

// Octal digits to the last byte, which is NUL or a space.
std::optional<uint64_t> OctalIn(const Block& block, Field field) {
  uint64_t value = 0;
  for (std::size_t at = 0; at + 1 < field.width; ++at) {
    char digit = block[field.offset + at];
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value << 3U | static_cast<uint64_t>(digit - '0');
  }
  char end = block[field.offset + field.width - 1];
  if (end != '\0' && end != ' ') return std::nullopt;
  return value;
}

// What a pax header says of the next entry.
struct Extended {
  std::optional<std::string> path;
  std::optional<uint32_t> uid;
  std::optional<uint32_t> gid;
};

class Reader {
 public:
  Reader(std::string_view archive, std::size_t max_entries)
      : rest_(archive), max_entries_(max_entries) {}

  Result<std::vector<TarEntry>> Read();

 private:
  // The next header; nothing at the end of the archive.
  Result<std::optional<Block>> NextHeader();
  Result<std::string_view> TakeContent(const Block& block);
  Status ReadExtended(std::string_view records);
  Status ReadRecord(std::string_view& records);
  Result<TarEntry> ReadEntry(const Block& block);
  Status CheckEnd() const;

  std::string_view rest_;
  std::size_t max_entries_;
  std::optional<Extended> extended_;
  std::set<std::string> paths_;
};

Result<std::optional<Block>> Reader::NextHeader() {
  if (rest_.size() < tar::kBlockBytes) return Refuse("the archive is cut short");
  Block block;
  std::memcpy(block.data(), rest_.data(), block.size());
  rest_.remove_prefix(block.size());
  if (block == Block{}) return std::optional<Block>();
  if (std::string_view(block.data() + tar::kMagic.offset, tar::kMagic.width) != tar::kUstar)
    return Refuse("this is no archive of the ustar format");
  // The field has its space behind the NUL.
  if (OctalIn(block, {tar::kChecksum.offset, tar::kChecksum.width - 1}) != tar::ChecksumOf(block))
    return Refuse("the checksum of a header is wrong: the archive was damaged");
  return std::optional<Block>(block);
}

Result<std::string_view> Reader::TakeContent(const Block& block) {
  std::optional<uint64_t> size = OctalIn(block, tar::kSize);
  if (!size) return Refuse("the size of an entry is no number");
  uint64_t padded = (*size + tar::kBlockBytes - 1) / tar::kBlockBytes * tar::kBlockBytes;
  if (padded > rest_.size()) return Refuse("the archive is cut short");
  std::string_view content = rest_.substr(0, *size);
  rest_.remove_prefix(padded);
  return content;
}

Status Reader::ReadRecord(std::string_view& records) {
  std::size_t space = records.find(' ');
  std::optional<uint64_t> length = ParseUnsigned(records.substr(0, space));
  bool whole = space != records.npos && length && *length > space + 1 &&
               *length <= records.size() && records[*length - 1] == '\n';
  if (!whole) return Refuse("a record of a pax header is malformed");
  std::string_view record = records.substr(space + 1, *length - space - 2);
  records.remove_prefix(*length);
  std::size_t equals = record.find('=');
  if (equals == record.npos) return Refuse("a record of a pax header is malformed");
  std::string_view key = record.substr(0, equals);
  std::string_view value = record.substr(equals + 1);
  if (key == "path" && !extended_->path) {
    extended_->path = value;
    return Ok();
  }
  std::optional<uint32_t>* id = key == "uid"   ? &extended_->uid
                                : key == "gid" ? &extended_->gid
                                               : nullptr;
  std::optional<uint64_t> number = ParseUnsigned(value);
  if (id == nullptr || id->has_value() || !number || *number > UINT32_MAX)
    return Refuse(Text("a pax header has the record '", Printable(key),
                       "', which is unknown, comes twice or holds no id"));
  *id = static_cast<uint32_t>(*number);
  return Ok();
}

Status Reader::ReadExtended(std::string_view records) {
  if (extended_) return Refuse("a pax header is not followed by its entry");
  if (records.size() > kMaxExtendedBytes)
    return Refuse(Text("a pax header has more than ", kMaxExtendedBytes, " bytes"));
  extended_.emplace();
  while (!records.empty()) TRY(ReadRecord(records));
  return Ok();
}

Result<TarEntry> Reader::ReadEntry(const Block& block) {
  Extended extended = extended_.value_or(Extended{});
  extended_.reset();
  TarEntry entry;
  entry.path = extended.path.value_or(std::string(TextIn(block, tar::kName)));
  if (!IsArchivePath(entry.path) || !TextIn(block, tar::kPrefix).empty())
    return Refuse(Text("the path '", Printable(entry.path.substr(0, tar::kNameBytes)),
                       "' is absolute, leads upwards or is too long"));
  if (!paths_.insert(entry.path).second)
    return Refuse(Text("'", Printable(entry.path), "' comes twice"));
  std::optional<uint64_t> mode = OctalIn(block, tar::kMode);
  std::optional<uint64_t> uid = OctalIn(block, tar::kUid);
  std::optional<uint64_t> gid = OctalIn(block, tar::kGid);
  std::optional<uint64_t> major = OctalIn(block, tar::kMajor);
  std::optional<uint64_t> minor = OctalIn(block, tar::kMinor);
  // Seven digits at most, so each fits.
  if (!mode || !uid || !gid || !major || !minor)
    return Refuse(Text("the header of '", Printable(entry.path), "' holds no numbers"));
  entry.mode = static_cast<uint32_t>(*mode);
  entry.uid = extended.uid.value_or(static_cast<uint32_t>(*uid));
  entry.gid = extended.gid.value_or(static_cast<uint32_t>(*gid));
  entry.device_major = static_cast<uint32_t>(*major);
  entry.device_minor = static_cast<uint32_t>(*minor);
  return entry;
}

// Two empty blocks, of which one was taken; other programs put more of them.
Status Reader::CheckEnd() const {
  if (extended_) return Refuse("a pax header is not followed by its entry");
  if (rest_.size() < tar::kBlockBytes) return Refuse("the archive is cut short");
  if (rest_.find_first_not_of('\0') != rest_.npos) return Refuse("something follows the archive");
  return Ok();
}

Result<std::vector<TarEntry>> Reader::Read() {
  std::vector<TarEntry> entries;
  while (true) {
    std::optional<Block> header = TRY(NextHeader());
    if (!header) break;
    char type = (*header)[tar::kType.offset];
    if (type != tar::kFile && type != tar::kExtended)
      return Refuse(Text("'", Printable(TextIn(*header, tar::kName)),
                         "' is no regular file (type '", Printable({&type, 1}), "')"));
    if (type == tar::kExtended) {
      std::string_view records = TRY(TakeContent(*header));
      TRY(ReadExtended(records));
      continue;
    }
    if (entries.size() == max_entries_)
      return Refuse(Text("the archive has more than ", max_entries_, " entries"));
    entries.push_back(TRY(ReadEntry(*header)));
    entries.back().content = TRY(TakeContent(*header));
  }
  TRY(CheckEnd());
  return entries;
}

}  // namespace

Result<std::vector<TarEntry>> ReadTar(std::string_view archive, std::size_t max_entries) {
  return Reader(archive, max_entries).Read();
}

}  // namespace taskcell::probe

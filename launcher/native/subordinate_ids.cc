#include "launcher/native/subordinate_ids.h"

#include <cerrno>
#include <cstdlib>
#include <optional>

#include "launcher/base/accounts.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::native {
namespace {

constexpr uint64_t kLastId = 0xFFFFFFFEU;  // 2^32 - 1 is "no id" (-1)

Error Malformed(std::size_t line, std::string_view text, std::string_view why,
                std::string_view code = kSubidsMalformed) {
  return Error(Kind::kConfig, Text("line ", line, " '", Printable(text), "': ", why)).Coded(code);
}

Result<IdRange> ParseRange(std::size_t line, std::string_view text,
                           const std::vector<std::string_view>& fields) {
  if (!text.empty() && text.back() == '\r')
    return Malformed(line, text, "ends with a carriage return; rewrite the file with Unix lines");
  if (fields.size() != 3) return Malformed(line, text, "is not NAME:FIRST:COUNT");
  std::optional<uint64_t> first = ParseUnsigned(fields[1]);
  std::optional<uint64_t> count = ParseUnsigned(fields[2]);
  if (!first || !count) return Malformed(line, text, "FIRST and COUNT must be decimal numbers");
  if (*first == 0) return Malformed(line, text, "a range must not hold id 0");
  if (*count == 0) return Malformed(line, text, "the range is empty");
  if (*first > kLastId || *count - 1 > kLastId - *first)
    return Malformed(line, text, "the range passes the largest id, 4294967294", kSubidsOverflow);
  return IdRange{static_cast<uint32_t>(*first), static_cast<uint32_t>(*count)};
}

}  // namespace

Result<std::vector<IdRange>> ParseSubordinateIds(std::string_view text, std::string_view name,
                                                 uint32_t uid) {
  std::vector<IdRange> ranges;
  std::string number = std::to_string(uid);
  std::size_t line = 0;
  for (std::string_view entry : Split(text, '\n')) {
    ++line;
    if (entry.empty() || entry.front() == '#') continue;
    std::vector<std::string_view> fields = Split(entry, ':');
    bool ours = (!name.empty() && fields[0] == name) || fields[0] == number;
    if (ours) ranges.push_back(TRY(ParseRange(line, entry, fields)));
  }
  return ranges;
}

uint32_t PickId(const std::vector<IdRange>& ranges, uint64_t pick) {
  uint64_t total = 0;
  for (const IdRange& range : ranges) total += range.count;
  if (total == 0) std::abort();  // callers have at least one id
  pick %= total;
  for (const IdRange& range : ranges) {
    if (pick < range.count) return range.first + static_cast<uint32_t>(pick);
    pick -= range.count;
  }
  return ranges.front().first;
}

Result<std::string> ReadAccountFile(const char* path) {
  Result<std::string> text = sys::ReadFile(AT_FDCWD, path, kMaxSubordinateFileBytes);
  if (!text.ok() && text.error().err == ENOENT) return std::string();
  return text;
}

Result<SubordinateFiles> ReadSubordinateFiles() {
  return SubordinateFiles{TRY(ReadAccountFile("/etc/passwd")), TRY(ReadAccountFile("/etc/subuid")),
                          TRY(ReadAccountFile("/etc/subgid"))};
}

Result<SubordinateIds> GrantedIds(const SubordinateFiles& files, uint32_t uid) {
  const std::string name = LoginName(files.passwd, uid);
  return SubordinateIds{TRY(ParseSubordinateIds(files.uids, name, uid).With("/etc/subuid")),
                        TRY(ParseSubordinateIds(files.gids, name, uid).With("/etc/subgid"))};
}

Result<SubordinateIds> ReadSubordinateIds(uint32_t uid) {
  return GrantedIds(TRY(ReadSubordinateFiles()), uid);
}

}  // namespace taskcell::native

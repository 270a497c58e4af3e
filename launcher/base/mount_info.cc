#include "launcher/base/mount_info.h"

#include <algorithm>
#include <optional>

#include "launcher/base/text.h"

namespace taskcell {
namespace {

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

// The kernel writes space, tab, newline, backslash and '#' as a backslash and three octal digits.
std::string Unescape(std::string_view text) {
  std::size_t at = std::min(text.find('\\'), text.size());
  std::string out(text.substr(0, at));
  for (; at < text.size(); ++at) {
    if (text[at] == '\\' && at + 3 < text.size() && text[at + 1] <= '3' && IsOctal(text[at + 1]) &&
        IsOctal(text[at + 2]) && IsOctal(text[at + 3])) {
      out += static_cast<char>((text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 +
                               (text[at + 3] - '0'));
      at += 3;
    } else {
      out += text[at];
    }
  }
  return out;
}

bool ParseDevice(std::string_view text, MountInfoLine& line) {
  std::vector<std::string_view> numbers = Split(text, ':');
  if (numbers.size() != 2) return false;
  std::optional<uint64_t> major = ParseUnsigned(numbers[0]);
  std::optional<uint64_t> minor = ParseUnsigned(numbers[1]);
  if (!major || !minor || *major > UINT32_MAX || *minor > UINT32_MAX) return false;
  line.major = static_cast<uint32_t>(*major);
  line.minor = static_cast<uint32_t>(*minor);
  return true;
}

std::optional<MountInfoLine> ParseLine(std::string_view text) {
  constexpr std::size_t kFixedFields = 6;  // before the optional ones
  constexpr std::size_t kFieldsAfter = 3;  // after the "-"
  std::vector<std::string_view> fields = Split(text, ' ');
  if (fields.size() < kFixedFields) return std::nullopt;
  MountInfoLine line;
  std::optional<uint64_t> id = ParseUnsigned(fields[0]);
  std::optional<uint64_t> parent = ParseUnsigned(fields[1]);
  if (!id || !parent || !ParseDevice(fields[2], line)) return std::nullopt;
  line.id = *id;
  line.parent = *parent;
  line.root = Unescape(fields[3]);
  line.mount_point = Unescape(fields[4]);
  line.options = Unescape(fields[5]);
  std::size_t at = kFixedFields;
  while (at < fields.size() && fields[at] != "-") line.optional_fields.emplace_back(fields[at++]);
  // An empty source is written as two spaces, so it is a field too.
  if (at + kFieldsAfter >= fields.size()) return std::nullopt;
  line.type = Unescape(fields[at + 1]);
  line.source = Unescape(fields[at + 2]);
  line.super_options = Unescape(fields[at + 3]);
  return line;
}

}  // namespace

Result<std::vector<MountInfoLine>> ParseMountInfo(std::string_view text) {
  if (text.size() > kMaxMountInfoBytes) {
    return Error(Kind::kViolation,
                 Text("mountinfo has ", text.size(), " bytes, more than ", kMaxMountInfoBytes));
  }
  std::vector<MountInfoLine> lines;
  for (std::string_view each : Split(text, '\n')) {
    if (each.empty()) continue;
    std::optional<MountInfoLine> line = ParseLine(each);
    if (!line) {
      return Error(Kind::kViolation,
                   Text("mountinfo line is not as proc(5) says: '", Printable(each), "'"));
    }
    lines.push_back(*std::move(line));
  }
  return lines;
}

bool HasMountOption(std::string_view options, std::string_view name) {
  while (true) {
    std::size_t end = options.find(',');
    if (options.substr(0, end) == name) return true;
    if (end == options.npos) return false;
    options.remove_prefix(end + 1);
  }
}

}  // namespace taskcell

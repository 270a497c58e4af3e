#include "launcher/base/accounts.h"

#include <vector>

#include "launcher/base/text.h"

namespace taskcell {

std::string LoginName(std::string_view passwd, uint32_t uid) {
  std::string number = std::to_string(uid);
  for (std::string_view entry : Split(passwd, '\n')) {
    std::vector<std::string_view> fields = Split(entry, ':');
    if (fields.size() >= 3 && fields[2] == number) return std::string(fields[0]);
  }
  return {};
}

std::optional<uint32_t> UserId(std::string_view passwd, std::string_view name) {
  for (std::string_view entry : Split(passwd, '\n')) {
    std::vector<std::string_view> fields = Split(entry, ':');
    if (fields.size() < 3 || fields[0] != name || name.empty()) continue;
    std::optional<uint64_t> uid = ParseUnsigned(fields[2]);
    if (uid && *uid <= UINT32_MAX) return static_cast<uint32_t>(*uid);
  }
  return std::nullopt;
}

std::optional<uint32_t> LoginGroup(std::string_view passwd, uint32_t uid) {
  std::string number = std::to_string(uid);
  for (std::string_view entry : Split(passwd, '\n')) {
    std::vector<std::string_view> fields = Split(entry, ':');
    if (fields.size() < 4 || fields[2] != number) continue;
    std::optional<uint64_t> gid = ParseUnsigned(fields[3]);
    if (!gid || *gid > UINT32_MAX) return std::nullopt;
    return static_cast<uint32_t>(*gid);
  }
  return std::nullopt;
}

std::optional<uint32_t> OwnGroup(std::string_view passwd, std::string_view group, uint32_t uid) {
  std::string number = std::to_string(uid);
  std::string_view name;
  std::string_view gid;
  for (std::string_view entry : Split(passwd, '\n')) {
    std::vector<std::string_view> fields = Split(entry, ':');
    if (fields.size() < 4 || fields[2] != number) continue;
    name = fields[0];
    gid = fields[3];
    break;
  }
  if (gid.empty()) return std::nullopt;
  for (std::string_view entry : Split(passwd, '\n')) {
    std::vector<std::string_view> fields = Split(entry, ':');
    if (fields.size() >= 4 && fields[3] == gid && fields[2] != number) return std::nullopt;
  }
  bool found = false;
  for (std::string_view entry : Split(group, '\n')) {
    std::vector<std::string_view> fields = Split(entry, ':');
    if (fields.size() < 4 || fields[2] != gid) continue;
    found = true;
    for (std::string_view member : Split(fields[3], ',')) {
      if (!member.empty() && member != name) return std::nullopt;
    }
  }
  std::optional<uint64_t> parsed = ParseUnsigned(gid);
  if (!found || !parsed || *parsed > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*parsed);
}

}  // namespace taskcell

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

}  // namespace taskcell

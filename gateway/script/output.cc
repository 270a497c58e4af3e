#include "gateway/script/output.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::gateway {

bool ScriptOutput::Take(std::string& kept, std::string_view bytes) {
  total_ += bytes.size();
  const std::size_t room = kMaxKeptOutput + 1 - kept.size();
  kept += bytes.substr(0, std::min(room, bytes.size()));
  return !overflowed();
}

std::string KeptText(std::string_view bytes, std::size_t limit, bool& truncated) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = Utf8SequenceLength(bytes);
    const std::string_view next = length == 0 ? kReplacement : bytes.substr(0, length);
    if (text.size() + next.size() > limit) {
      truncated = true;
      return text.append(kTruncated);
    }
    text += next;
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

}  // namespace taskcell::gateway

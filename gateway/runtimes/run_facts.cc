#include "gateway/runtimes/run_facts.h"

#include <algorithm>
#include <array>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kMaxErrorBytes = 16U << 10U;
constexpr std::size_t kMaxToolNameBytes = 64;
// An escape sequence longer than this is no sequence: only its first byte goes.
constexpr std::size_t kMaxSequenceBytes = 4096;

constexpr std::array<std::string_view, 6> kRateTexts = {
    "usage limit", "quota", "credit balance", "hit your limit", "out of extra usage", "ratelimit"};
constexpr std::array<std::string_view, 7> kAuthTexts = {
    "not signed in", "incorrect api key", "api key not valid", "unauthorized",
    "not logged in", "please run /login", "invalid api key"};

bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool HasWord(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    bool starts = at == 0 || !IsWordByte(text[at - 1]);
    std::size_t end = at + word.size();
    if (starts && (end == text.size() || !IsWordByte(text[end]))) return true;
  }
  return false;
}

// "rate" and "limit" with at most one byte between them.
bool SaysRateLimit(std::string_view text) {
  for (std::size_t at = text.find("rate"); at != std::string_view::npos;
       at = text.find("rate", at + 1)) {
    std::string_view after = text.substr(at + 4);
    if (after.substr(0, 5) == "limit" || (after.size() > 1 && after.substr(1, 5) == "limit")) {
      return true;
    }
  }
  return false;
}

// The length of the terminal sequence after the escape byte `text` begins with, or 1.
std::size_t SequenceLength(std::string_view text) {
  std::size_t end = std::min(text.size(), kMaxSequenceBytes);
  if (text.size() < 2) return 1;
  if (text[1] == '[') {  // CSI: parameters, then one byte of @ to ~
    for (std::size_t i = 2; i < end; ++i) {
      auto byte = static_cast<unsigned char>(text[i]);
      if (byte >= 0x40 && byte <= 0x7E) return i + 1;
      if (byte < 0x20 || byte > 0x7E) return i;
    }
    return 1;
  }
  if (text[1] == ']') {  // OSC: up to BEL or ESC backslash, on one line
    for (std::size_t i = 2; i < end && text[i] != '\n'; ++i) {
      if (text[i] == '\a') return i + 1;
      if (text[i] == '\x1b' && i + 1 < end && text[i + 1] == '\\') return i + 2;
    }
  }
  return 1;
}

}  // namespace

void RunFacts::AddError(std::string_view text) {
  if (text.empty() || errors.size() >= kMaxErrorBytes) return;
  if (!errors.empty()) errors += '\n';
  errors += text.substr(0, kMaxErrorBytes);
}

void RunFacts::Violate(std::string_view tool) {
  if (!violation.empty()) return;
  for (char c : tool) {
    bool keep = IsWordByte(c) || c == '-' || c == '.' || c == ':';
    if (keep && violation.size() < kMaxToolNameBytes) violation += c;
  }
  if (violation.empty()) violation = "unnamed tool";
}

void RunFacts::UseTool(std::string_view tool) {
  used_tool = true;
  tool = tool.substr(0, kMaxToolNameBytes);
  if (tools.size() == kMaxToldTools || std::find(tools.begin(), tools.end(), tool) != tools.end())
    return;
  tools.emplace_back(tool);
}

bool SaysRateLimited(std::string_view text) {
  std::string lower = Lower(text);
  if (SaysRateLimit(lower) || HasWord(lower, "429")) return true;
  return std::any_of(kRateTexts.begin(), kRateTexts.end(), [&lower](std::string_view part) {
    return lower.find(part) != std::string::npos;
  });
}

bool SaysAuthFailed(std::string_view text) {
  std::string lower = Lower(text);
  return std::any_of(kAuthTexts.begin(), kAuthTexts.end(), [&lower](std::string_view part) {
    return lower.find(part) != std::string::npos;
  });
}

std::string PlainText(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    auto byte = static_cast<unsigned char>(text[0]);
    std::size_t skip = 0;
    if (byte == 0x1B) {
      skip = SequenceLength(text);
    } else if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7F) {
      skip = 1;
    } else if (byte == 0xC2 && text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xA0) {
      skip = 2;  // U+0080 to U+009F: the same codes in one character
    }
    if (skip == 0) {
      plain += text[0];
      skip = 1;
    }
    text.remove_prefix(skip);
  }
  return plain;
}

}  // namespace taskcell::gateway

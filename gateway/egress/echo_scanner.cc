#include "gateway/egress/echo_scanner.h"

#include <algorithm>

namespace taskcell::gateway {

EchoScanner::EchoScanner(std::string_view secret) : secret_(secret) {}

EchoScanner::~EchoScanner() { sys::Wipe(held_); }

bool EchoScanner::Pass(std::string_view bytes, std::string* out) {
  if (secret_.empty()) {
    *out += bytes;
    return true;
  }
  std::string joined;
  if (!held_.empty()) {
    joined = held_;
    joined += bytes;
    bytes = joined;
    held_.clear();
  }
  std::size_t found = bytes.find(secret_.view());
  if (found != std::string_view::npos) {
    *out += bytes.substr(0, found);
    return false;
  }
  std::size_t kept = PossibleStart(bytes);
  *out += bytes.substr(0, bytes.size() - kept);
  held_ = bytes.substr(bytes.size() - kept);
  return true;
}

void EchoScanner::Finish(std::string* out) {
  *out += held_;
  held_.clear();
}

std::size_t EchoScanner::PossibleStart(std::string_view text) const {
  for (std::size_t length = std::min(text.size(), secret_.size() - 1); length > 0; --length) {
    if (text.ends_with(secret_.view().substr(0, length))) return length;
  }
  return 0;
}

}  // namespace taskcell::gateway

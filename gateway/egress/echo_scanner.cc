#include "gateway/egress/echo_scanner.h"

#include <algorithm>
#include <cstring>

namespace taskcell::gateway {

EchoScanner::EchoScanner(std::string_view secret) : secret_(secret) {}

EchoScanner::~EchoScanner() {
  ::explicit_bzero(secret_.data(), secret_.size());
  ::explicit_bzero(held_.data(), held_.size());
}

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
  std::size_t found = bytes.find(secret_);
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
    if (text.ends_with(std::string_view(secret_).substr(0, length))) return length;
  }
  return 0;
}

}  // namespace taskcell::gateway

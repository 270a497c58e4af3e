#pragma once

#include <string>
#include <string_view>

#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

// Looks for a secret in a stream of bytes, across the borders of its pieces, holding back only
// what may be the beginning of it. For an answer that echoes the credential.
class EchoScanner {
 public:
  explicit EchoScanner(std::string_view secret);
  ~EchoScanner();
  EchoScanner(const EchoScanner&) = delete;
  EchoScanner& operator=(const EchoScanner&) = delete;

  // Appends to `out` what of the stream so far is certainly not the secret. False when the secret
  // was found: `out` got what stood before it and the stream must be cut there.
  bool Pass(std::string_view bytes, std::string* out);

  // Appends what was held back; the stream has ended.
  void Finish(std::string* out);

 private:
  // How many bytes at the end of `text` may be the secret's beginning.
  std::size_t PossibleStart(std::string_view text) const;

  sys::SecretText secret_;
  std::string held_;
};

}  // namespace taskcell::gateway

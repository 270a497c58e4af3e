#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace taskcell::gateway {

using Digest = std::array<uint8_t, 32>;  // SHA-256

Digest DigestOf(std::string_view text);

// 64 lowercase hex digits; and back, nullopt for anything else.
std::string Hex(const Digest& digest);
std::optional<Digest> ParseDigest(std::string_view hex);

// The same of a text that comes in pieces.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;

  void Take(std::string_view piece);
  // Once, at the end.
  Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taskcell::gateway

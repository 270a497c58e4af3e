#include "gateway/ledger/digest.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include <new>

namespace taskcell::gateway {

static_assert(std::tuple_size_v<Digest> == SHA256_DIGEST_LENGTH);

struct Digester::State {
  EVP_MD_CTX* context = ::EVP_MD_CTX_new();
  ~State() { ::EVP_MD_CTX_free(context); }
};

// Out of memory is all that can fail here: told as the standard library tells it.
Digester::Digester() : state_(std::make_unique<State>()) {
  if (state_->context == nullptr ||
      ::EVP_DigestInit_ex(state_->context, ::EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

Digester::~Digester() = default;

void Digester::Take(std::string_view piece) {
  if (::EVP_DigestUpdate(state_->context, piece.data(), piece.size()) != 1) throw std::bad_alloc();
}

Digest Digester::Finish() {
  Digest digest = {};
  if (::EVP_DigestFinal_ex(state_->context, digest.data(), nullptr) != 1) throw std::bad_alloc();
  return digest;
}

Digest DigestOf(std::string_view text) {
  Digester digester;
  digester.Take(text);
  return digester.Finish();
}

std::string Hex(const Digest& digest) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * digest.size());
  for (uint8_t byte : digest) {
    text += kHex[byte >> 4U];
    text += kHex[byte & 15U];
  }
  return text;
}

std::optional<Digest> ParseDigest(std::string_view hex) {
  constexpr std::string_view kHex = "0123456789abcdef";
  Digest digest = {};
  if (hex.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const std::size_t high = kHex.find(hex[2 * i]);
    const std::size_t low = kHex.find(hex[2 * i + 1]);
    if (high == kHex.npos || low == kHex.npos) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high << 4U | low);
  }
  return digest;
}

}  // namespace taskcell::gateway

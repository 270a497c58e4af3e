#include "gateway/config/secret.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "launcher/base/text.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kScheme = "secret://";
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;

struct ContextDeleter {
  void operator()(EVP_CIPHER_CTX* context) const { ::EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, ContextDeleter>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());  // OpenSSL's byte type
}
unsigned char* Bytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());  // OpenSSL's byte type
}

std::string EncodeBase64(std::string_view plain) {
  std::string out((plain.size() + 2) / 3 * 4 + 1, '\0');
  ::EVP_EncodeBlock(Bytes(out), Bytes(plain), static_cast<int>(plain.size()));
  out.pop_back();
  return out;
}

Result<SecretText> NotEmpty(std::string_view value, std::string_view where) {
  value = Trim(value);
  if (value.empty()) return Error(Kind::kConfig, Text(where, " is not set or empty"));
  return SecretText(value);
}

Result<SecretText> ReadSecretFile(const std::string& path) {
  UniqueFd file = TRY(sys::Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat info = TRY(sys::Stat(file.get()));
  if (!S_ISREG(info.st_mode))
    return Error(Kind::kConfig, Text("'", Printable(path), "' is not a regular file"));
  if (OthersMayRead(file.get()))
    return Error(Kind::kConfig,
                 Text("others may read '", Printable(path), "': chmod 600 ", Printable(path)));
  return SecretText::Take(TRY(sys::ReadAll(file.get(), kMaxSecretBytes)));
}

}  // namespace

std::string_view WhyNoToken(std::string_view secret) {
  if (secret.starts_with('{'))
    return "holds a credential document (a program's auth.json), which only the oauth_token or "
           "oauth_token_enc of an oauth account may; store an API key, or for claude a token "
           "(`claude setup-token`)";
  if (secret.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos)
    return "holds a line break or a NUL byte";
  return "";
}

Result<std::string> DecodeBase64(std::string_view encoded) {
  const Error malformed(Kind::kConfig, "it is not base64");
  if (encoded.empty() || encoded.size() % 4 != 0) return malformed;
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::size_t body = encoded.find_last_not_of('=') + 1;
  if (encoded.size() - body > 2 ||
      encoded.substr(0, body).find_first_not_of(kAlphabet) != std::string_view::npos)
    return malformed;
  std::string out(encoded.size() / 4 * 3, '\0');
  if (::EVP_DecodeBlock(Bytes(out), Bytes(encoded), static_cast<int>(encoded.size())) < 0)
    return malformed;
  out.resize(out.size() - (encoded.size() - body));
  return out;
}

Result<SecretText> ReadKeyfile(int home_fd) {
  Result<std::string> read = sys::ReadFile(home_fd, ".keyfile", kKeyBytes + 1);
  if (!read.ok())
    return Error(Kind::kConfig, Text(".keyfile: ", read.error().text), read.error().err);
  SecretText key = SecretText::Take(std::move(read).value());
  if (key.size() != kKeyBytes)
    return Error(Kind::kConfig, Text(".keyfile must hold exactly ", kKeyBytes, " bytes"));
  return key;
}

Result<SecretText> Decrypt(std::string_view encoded, std::string_view key) {
  if (key.size() != kKeyBytes)
    return Error(Kind::kConfig, Text("the key must have ", kKeyBytes, " bytes"));
  if (encoded.size() > 2 * kMaxSecretBytes) return Error(Kind::kConfig, "it is too long");
  std::string raw = TRY(DecodeBase64(Trim(encoded)));
  if (raw.size() < kNonceBytes + kTagBytes) return Error(Kind::kConfig, "it is too short");
  std::string tag = raw.substr(raw.size() - kTagBytes);
  std::string_view body(raw.data() + kNonceBytes, raw.size() - kNonceBytes - kTagBytes);
  std::string plain(body.size(), '\0');
  Context context(::EVP_CIPHER_CTX_new());
  int length = 0;
  int rest = 0;
  std::array<unsigned char, kTagBytes> nothing;
  bool good =
      context != nullptr &&
      ::EVP_DecryptInit_ex(context.get(), ::EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(raw)) ==
          1 &&
      ::EVP_DecryptUpdate(context.get(), Bytes(plain), &length, Bytes(body),
                          static_cast<int>(body.size())) == 1 &&
      ::EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
      ::EVP_DecryptFinal_ex(context.get(), nothing.data(), &rest) == 1;
  SecretText secret = SecretText::Take(std::move(plain));
  if (!good || static_cast<std::size_t>(length) != secret.size())
    return Error(Kind::kConfig, "it does not decrypt with this home's .keyfile");
  return secret;
}

Result<std::string> Encrypt(std::string_view plain, std::string_view key, std::string_view nonce) {
  if (key.size() != kKeyBytes || nonce.size() != kNonceBytes)
    return Error(Kind::kUsage, "wrong size of key or nonce");
  std::string body(plain.size(), '\0');
  std::string tag(kTagBytes, '\0');
  Context context(::EVP_CIPHER_CTX_new());
  int length = 0;
  int rest = 0;
  bool good =
      context != nullptr &&
      ::EVP_EncryptInit_ex(context.get(), ::EVP_aes_256_gcm(), nullptr, Bytes(key), Bytes(nonce)) ==
          1 &&
      ::EVP_EncryptUpdate(context.get(), Bytes(body), &length, Bytes(plain),
                          static_cast<int>(plain.size())) == 1 &&
      ::EVP_EncryptFinal_ex(context.get(), Bytes(tag), &rest) == 1 &&
      ::EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
  if (!good) return Error(Kind::kSystem, "AES-256-GCM failed");
  return EncodeBase64(Text(nonce, body, tag));
}

bool OthersMayRead(int fd) {
  Result<struct stat> info = sys::Stat(fd);
  if (!info.ok() || (info->st_mode & S_IROTH) != 0) return true;
  if ((info->st_mode & S_IRGRP) == 0) return false;
  if (info->st_gid != 0 && info->st_gid != mounts::TrustIn(::geteuid()).own_group) return true;
  // Then the group's bits may be the mask of a list that names others (acl(5)).
  Result<bool> listed = sys::HasAccessList(fd);
  return !listed.ok() || listed.value();
}

std::string FileOfReference(std::string_view value) {
  constexpr std::string_view kFileScheme = "secret://file/";
  return std::string(value.starts_with(kFileScheme) ? value.substr(kFileScheme.size()) : "");
}

bool IsSecretReference(std::string_view value) { return value.starts_with(kScheme); }

Result<SecretText> ResolveReference(std::string_view reference, const Environment& environment) {
  if (!IsSecretReference(reference)) return Error(Kind::kConfig, "it is no secret:// reference");
  reference.remove_prefix(kScheme.size());
  std::size_t slash = reference.find('/');
  std::string_view backend = reference.substr(0, slash);
  std::string_view name =
      slash == std::string_view::npos ? std::string_view() : reference.substr(slash + 1);
  if (name.empty()) return Error(Kind::kConfig, "the secret:// reference names nothing");
  if (backend == "env")
    return NotEmpty(Lookup(environment, name), Text("environment variable ", Printable(name)));
  if (backend == "file") {
    if (!name.starts_with('/'))
      return Error(Kind::kConfig, "secret://file needs an absolute path (secret://file//abs/path)");
    std::string path(name);
    return NotEmpty(TRY(ReadSecretFile(path)), Text("file '", Printable(path), "'"));
  }
  for (std::string_view known : {"keychain", "local", "vault", "onepassword", "infisical"}) {
    if (backend == known)
      return Error(Kind::kUnsupported,
                   Text("secret backend ", known, " is not supported by this version of taskcell"));
  }
  return Error(Kind::kConfig, Text("unknown secret backend '", Printable(backend), "'"));
}

}  // namespace taskcell::gateway

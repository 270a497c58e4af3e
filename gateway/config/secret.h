#pragma once

#include <string>
#include <string_view>

#include "gateway/config/environment.h"
#include "launcher/base/result.h"
#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

inline constexpr std::size_t kKeyBytes = 32;                // <home>/.keyfile, exactly
inline constexpr std::size_t kMaxSecretBytes = 64U << 10U;  // one secret, also its file

using sys::SecretText;
using sys::Wipe;

// Why `secret` cannot stand in a request's header, for a message that begins with its place; empty
// when it can. A credential document can't: beside the token it holds the one that renews it, which
// goes to nobody. Pure.
std::string_view WhyNoToken(std::string_view secret);

// Reads <home>/.keyfile. kConfig when it is missing or not exactly kKeyBytes long; it is never
// made.
Result<SecretText> ReadKeyfile(int home_fd);

// Standard base64, padded to a multiple of four; kConfig for anything else. Pure.
Result<std::string> DecodeBase64(std::string_view encoded);

// Decrypts an `*_enc` value: standard base64 of a 12-byte nonce, the ciphertext and a 16-byte tag,
// AES-256-GCM without additional data (compatibility facts 3.3). kConfig when anything does not
// fit; nothing of the value is in the text. Pure.
Result<SecretText> Decrypt(std::string_view encoded, std::string_view key);

// The inverse, for tests and tools: `nonce` is 12 bytes and must not be used twice with one key.
Result<std::string> Encrypt(std::string_view plain, std::string_view key, std::string_view nonce);

// True when somebody but root and this process's user may read the file `fd` (which may be O_PATH),
// by its mode or by an access control list, or where that cannot be told. A group that is known to
// hold nobody else does not count.
bool OthersMayRead(int fd);

// True for "secret://...".
bool IsSecretReference(std::string_view value);

// Follows one reference: secret://env/NAME and secret://file//abs/path. kUnsupported for the
// platform's other backends (keychain, local, vault, onepassword, infisical), kConfig for a
// malformed one, one that leads nowhere, or to a file that others may read: a reference is never
// itself taken for a secret. The result is trimmed and not empty.
Result<SecretText> ResolveReference(std::string_view reference, const Environment& environment);

// The path in secret://file//abs/path; empty for any other value.
std::string FileOfReference(std::string_view value);

}  // namespace taskcell::gateway

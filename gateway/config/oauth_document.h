#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launcher/base/result.h"
#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

// True for a credential document, the file in which a program keeps the login of a person; a token
// or a key never begins like one.
bool IsOauthDocument(std::string_view secret);

// A credential document, read.
struct OauthDocument {
  sys::SecretText access_token;
  sys::SecretText refresh_token;  // empty: it can't be renewed
  int64_t expires_at = 0;         // of the access token, unix seconds
  std::string account;            // openai: the account that requests name beside the token
  std::string previous;           // ShortDigest of the document that this one replaced
};

// Reads the document of an account of `provider`: claude's .credentials.json for anthropic, codex's
// auth.json for openai. kConfig for another provider, and for one of another shape or without the
// time at which its token ends; nothing of it is in the text. Pure.
Result<OauthDocument> ReadOauthDocument(std::string_view document, std::string_view provider);

// What a token endpoint gave.
struct RenewedTokens {
  sys::SecretText access_token;
  sys::SecretText refresh_token;  // empty: the old one stays
  sys::SecretText id_token;       // empty: the same
  int64_t expires_in = 0;         // seconds; 0: it did not say
};

// Reads a token endpoint's answer (RFC 6749 section 5.1). kViolation where it is none. Pure.
Result<RenewedTokens> ReadTokenAnswer(std::string_view body);

// `document` with the new tokens in place of the old and all else as it was; `previous` is kept in
// it for OauthDocument. Pure.
Result<sys::SecretText> RenewDocument(std::string_view document, std::string_view provider,
                                      const RenewedTokens& tokens, int64_t now,
                                      std::string_view previous);

}  // namespace taskcell::gateway

// A credential document (first byte 'a' or 'o': of which provider), or what a token endpoint
// answers.
#include "gateway/config/oauth_document.h"
#include "launcher/base/text.h"
#include "tests/fuzz/fuzz.h"

namespace taskcell {
namespace {

// Promises: what was read stays readable, with the new token, when it is renewed.
void CheckDocument(std::string_view text, std::string_view provider) {
  Result<gateway::OauthDocument> document = gateway::ReadOauthDocument(text, provider);
  if (!document.ok()) {
    fuzz::Require(document.error().kind == Kind::kConfig);
    return;
  }
  fuzz::Require(!document->access_token.empty() && document->expires_at > 0);
  gateway::RenewedTokens tokens;
  tokens.access_token = "renewed";
  Result<sys::SecretText> renewed = gateway::RenewDocument(text, provider, tokens, 1000, "p");
  fuzz::Require(renewed.ok());
  Result<gateway::OauthDocument> again = gateway::ReadOauthDocument(renewed.value(), provider);
  fuzz::Require(again.ok() && again->access_token == "renewed" && again->previous == "p");
  fuzz::Require(again->refresh_token == document->refresh_token);
}

void CheckAnswer(std::string_view text) {
  Result<gateway::RenewedTokens> tokens = gateway::ReadTokenAnswer(text);
  if (!tokens.ok()) return;
  fuzz::Require(!tokens->access_token.empty() && tokens->expires_in >= 0);
  for (char c :
       Text(tokens->access_token.view(), tokens->refresh_token.view(), tokens->id_token.view()))
    fuzz::Require(c > ' ' && c < '\x7f');
}

}  // namespace
}  // namespace taskcell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  std::string_view input = fuzz::TextOf(data, size);
  const auto what = fuzz::TakeByte(input);
  if (what == 'a') {
    CheckDocument(input, "anthropic");
  } else if (what == 'o') {
    CheckDocument(input, "openai");
  } else {
    CheckAnswer(input);
  }
  return 0;
}

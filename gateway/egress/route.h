#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/config/uplink.h"
#include "gateway/egress/limits.h"
#include "gateway/egress/purse.h"
#include "launcher/base/result.h"
#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

// Which protocol a program speaks to its model provider.
enum class WireApi {
  kAnthropicMessages,  // claude
  kOpenAiResponses,    // codex
  kOpenAiChat,         // openai_compat
};

// The one credential the broker adds. It lives in the gateway's memory only.
struct Credential {
  std::string header;  // lower case: "x-api-key" or "authorization"
  std::string prefix;  // "" or "Bearer "
  sys::SecretText secret;
  std::string beta;     // an anthropic-beta value the credential needs, or empty
  std::string account;  // the account a ChatGPT login names beside its token, or empty

  Credential() = default;
  Credential(Credential&&) = default;
  Credential& operator=(Credential&&) = default;
  Credential(const Credential&) = delete;
  Credential& operator=(const Credential&) = delete;
};

// The fixed place a route leads to, already checked.
struct Upstream {
  bool https = true;
  bool loopback = false;  // a loopback literal: the only host loopback addresses are accepted for
  std::string host;       // lower case; "::1" without brackets
  uint16_t port = 443;
  std::string prefix;  // path before the API's own, without a trailing slash: "" or "/v1"

  // "https://host[:port]/prefix", without a trailing slash.
  std::string Url() const;
};

// Where the requests of one cell go and what they may ask for.
struct Route {
  WireApi api = WireApi::kOpenAiChat;
  std::string provider;  // "anthropic", "openai", "deepseek", ...
  Upstream upstream;
  Uplink uplink;
  bool overridden = false;  // the upstream came from the gateway's environment: say so in receipts
  Credential credential;
  std::vector<std::string> models;  // exact names; an empty list denies every model
  EgressLimits limits;
  Payment payment;
};

}  // namespace taskcell::gateway

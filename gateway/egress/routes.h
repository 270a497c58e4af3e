#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/egress/route.h"
#include "launcher/base/result.h"

namespace taskcell::gateway {

// Where requests with a login of openai's go, as codex's own do: it is no key of the API.
inline constexpr std::string_view kChatGptAddress = "https://chatgpt.com/backend-api/codex";

struct RouteRequest {
  WireApi api = WireApi::kOpenAiChat;
  std::string provider;             // a provider id of the account store
  std::vector<std::string> models;  // the agent's model and what its program maps it to
  sys::SecretText secret;           // an API key, or an sk-ant-oat token of `claude setup-token`
  bool login = false;               // `secret` is the access token of a person's login
  std::string login_account;        // what openai wants named beside it
  Uplink uplink;
  std::string override_url;  // value of OverrideVariable(provider) in the gateway's environment
};

// The environment variable of the gateway that replaces a provider's own address, named as the
// provider's program names it: ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GROK_XAI_API_BASE_URL; empty
// for a provider without one. It is the operator's, not the cell's: the gateway reads it, no job
// ever does.
std::string_view OverrideVariable(std::string_view provider);

// The address of a provider, "" for one that is not known or does not speak `api`.
std::string_view ProviderAddress(WireApi api, std::string_view provider);

// Whether the provider is known to search the web for this model without a tool being named, so
// that no rule about requests could stop it: openrouter's ":online", openai's search and research
// models, perplexity's and groq's own, whoever serves them.
bool SearchesByItself(std::string_view model);

// Parses an address the way the platform takes it: https, or http for localhost, 127.0.0.1 and
// [::1] only; a plain host name or dotted address; no userinfo, query or fragment; trailing slashes
// are dropped. Odd spellings of an address (0x7f.1, 2130706433, a trailing dot, zone ids, IDNA) are
// refused.
Result<Upstream> ParseUpstream(std::string_view url);

// Builds the route. An unknown provider, an unusable override, no model or an empty or unprintable
// secret is an Error of kind kConfig; its text never holds the secret.
Result<Route> RouteFor(RouteRequest request);

}  // namespace taskcell::gateway

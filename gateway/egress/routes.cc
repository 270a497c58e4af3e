#include "gateway/egress/routes.h"

#include <algorithm>
#include <optional>

#include "gateway/config/allowed_host.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kUrlBytes = 512;
constexpr std::size_t kSecretBytes = 16U << 10;
constexpr std::string_view kOAuthTokenPrefix = "sk-ant-oat";

struct ProviderRow {
  WireApi api;
  std::string_view provider;
  std::string_view address;
};

// Addresses of the platform's presets; for messages and responses the vendor's own API.
constexpr ProviderRow kProviders[] = {
    {WireApi::kAnthropicMessages, "anthropic", "https://api.anthropic.com"},
    {WireApi::kOpenAiResponses, "openai", "https://api.openai.com/v1"},
    {WireApi::kOpenAiChat, "openai", "https://api.openai.com/v1"},
    {WireApi::kOpenAiChat, "minimax", "https://api.minimax.io/v1"},
    {WireApi::kOpenAiChat, "deepseek", "https://api.deepseek.com/v1"},
    {WireApi::kOpenAiChat, "openrouter", "https://openrouter.ai/api/v1"},
    {WireApi::kOpenAiChat, "groq", "https://api.groq.com/openai/v1"},
    {WireApi::kOpenAiChat, "xai", "https://api.x.ai/v1"},
};

// Of openrouter, openai and groq; perplexity's are named sonar, groq's compound.
constexpr std::string_view kSearching[] = {":online", "-search-preview", "-search-api",
                                           "-deep-research"};

bool IsLowerAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsDottedAddress(std::string_view host) {
  std::vector<std::string_view> parts = Split(host, '.');
  return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           std::optional<uint64_t> number = ParseUnsigned(part);
           bool is_canonical = part.size() == 1 || part[0] != '0';
           return number && *number <= 255 && !part.empty() && is_canonical;
         });
}

bool IsPathPrefix(std::string_view path) {
  if (path.find("//") != std::string_view::npos) return false;
  for (std::string_view segment : Split(path, '/')) {
    if (segment == "." || segment == "..") return false;
  }
  return std::all_of(path.begin(), path.end(), [](char c) {
    return IsLowerAlnum(c) || (c >= 'A' && c <= 'Z') || c == '/' || c == '-' || c == '_' ||
           c == '.' || c == '~';
  });
}

// The address without what may be secret in it: a user name and password, and a query.
std::string Shown(std::string_view url) {
  constexpr std::string_view kHidden = "<hidden>";
  std::size_t start = url.find("://");
  start = start == std::string_view::npos ? 0 : start + 3;
  std::string_view rest = url.substr(start);
  std::size_t query = rest.find_first_of("?#");
  std::string_view tail = query == std::string_view::npos ? "" : rest.substr(query, 1);
  rest = rest.substr(0, query);
  std::size_t at = rest.rfind('@');
  std::string shown(url.substr(0, start));
  if (at != std::string_view::npos) shown += Text(kHidden, rest.substr(at));
  if (at == std::string_view::npos) shown += rest;
  return tail.empty() ? shown : Text(shown, tail, kHidden);
}

Error UrlError(std::string_view url, std::string_view why) {
  return Error(Kind::kConfig,
               Text("provider address '", Printable(Shown(url)), "' can't be used: ", why,
                    ". Give https://host[:port][/path], or http:// for localhost, 127.0.0.1 or "
                    "[::1] only."))
      .Coded("invalid_config");
}

// Takes "host[:port]" or "[::1][:port]" apart.
Status ParseAuthority(std::string_view url, std::string_view authority, Upstream* upstream) {
  if (authority.find('@') != std::string_view::npos)
    return UrlError(url,
                    "it holds a user name or password; a credential's place is [[accounts]] of "
                    "config.toml");
  std::string_view port;
  if (authority.starts_with("[")) {
    if (!authority.starts_with("[::1]")) return UrlError(url, "[::1] is the only IPv6 address");
    upstream->host = "::1";
    port = authority.substr(5);
  } else {
    std::size_t colon = authority.find(':');
    upstream->host = Lower(authority.substr(0, colon));
    port = colon == std::string_view::npos ? "" : authority.substr(colon);
    if (!IsHostName(upstream->host) && !IsDottedAddress(upstream->host))
      return UrlError(url, "the host is not a plain name or dotted address");
  }
  upstream->loopback =
      upstream->host == "localhost" || upstream->host == "127.0.0.1" || upstream->host == "::1";
  upstream->port = upstream->https ? 443 : 80;
  if (port.empty()) return Ok();
  std::optional<uint64_t> number = ParseUnsigned(port.substr(1));
  if (port[0] != ':' || !number || *number == 0 || *number > 65535)
    return UrlError(url, "the port is not a number from 1 to 65535");
  upstream->port = static_cast<uint16_t>(*number);
  return Ok();
}

bool IsVisible(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

Result<Credential> CredentialFor(WireApi api, sys::SecretText secret, bool is_login) {
  if (secret.empty() || secret.size() > kSecretBytes || !IsVisible(secret)) {
    return Error(Kind::kConfig,
                 "the account's secret is empty, too long or not one word of printable ASCII, so "
                 "it can't be sent as a credential: store it anew")
        .Coded("no_account");
  }
  Credential credential;
  if (api != WireApi::kAnthropicMessages) {
    credential.header = "authorization";
    credential.prefix = "Bearer ";
  } else if (is_login || secret.view().starts_with(kOAuthTokenPrefix)) {
    credential.header = "authorization";
    credential.prefix = "Bearer ";
    credential.beta = "oauth-2025-04-20";
  } else {
    credential.header = "x-api-key";
  }
  credential.secret = std::move(secret);
  return credential;
}

}  // namespace

std::string_view OverrideVariable(std::string_view provider) {
  if (provider == "anthropic") return "ANTHROPIC_BASE_URL";
  if (provider == "openai") return "OPENAI_BASE_URL";
  if (provider == "xai") return "GROK_XAI_API_BASE_URL";
  return "";
}

std::string_view ProviderAddress(WireApi api, std::string_view provider) {
  for (const ProviderRow& row : kProviders) {
    if (row.api == api && row.provider == provider) return row.address;
  }
  return "";
}

bool SearchesByItself(std::string_view model) {
  const std::string lower = Lower(model);
  const std::string_view name = std::string_view(lower).substr(lower.rfind('/') + 1);
  return std::any_of(
             std::begin(kSearching), std::end(kSearching),
             [name](std::string_view part) { return name.find(part) != std::string_view::npos; }) ||
         name.starts_with("sonar") || name.starts_with("compound");
}

Result<Upstream> ParseUpstream(std::string_view url) {
  if (url.size() > kUrlBytes) return UrlError("", "it is longer than 512 bytes");
  Upstream upstream;
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    upstream.https = false;
    rest.remove_prefix(7);
  } else {
    return UrlError(url, "it begins with neither https:// nor http://");
  }
  std::size_t slash = std::min(rest.find('/'), rest.size());
  TRY(ParseAuthority(url, rest.substr(0, slash), &upstream));
  if (!upstream.https && !upstream.loopback)
    return UrlError(url, "http would send the credential in the clear");
  std::string_view path = rest.substr(slash);
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!IsPathPrefix(path)) return UrlError(url, "the path holds more than plain segments");
  upstream.prefix = path;
  return upstream;
}

Result<Route> RouteFor(RouteRequest request) {
  std::string_view address = ProviderAddress(request.api, request.provider);
  if (address.empty()) {
    return Error(Kind::kConfig,
                 Text("the provider '", Printable(request.provider),
                      "' is not known for this runtime: name one of the presets in [model] "
                      "preferred as <provider>/<model>"))
        .Coded("invalid_config");
  }
  bool is_any_empty = std::any_of(request.models.begin(), request.models.end(),
                                  [](const std::string& model) { return model.empty(); });
  if (request.models.empty() || is_any_empty) {
    return Error(Kind::kConfig, "the agent has no model: set [model] preferred in agent.toml")
        .Coded("invalid_config");
  }
  Route route;
  route.api = request.api;
  route.overridden = !request.override_url.empty();
  if (request.login && request.api == WireApi::kOpenAiResponses) address = kChatGptAddress;
  Result<Upstream> upstream = ParseUpstream(route.overridden ? request.override_url : address);
  if (!upstream.ok()) return std::move(upstream).With(OverrideVariable(request.provider)).error();
  route.upstream = std::move(upstream).value();
  route.credential = TRY(CredentialFor(request.api, std::move(request.secret), request.login));
  if (IsVisible(request.login_account)) route.credential.account = std::move(request.login_account);
  route.uplink = std::move(request.uplink);
  route.provider = std::move(request.provider);
  route.models = std::move(request.models);
  return route;
}

}  // namespace taskcell::gateway

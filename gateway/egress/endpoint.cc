#include "gateway/egress/endpoint.h"

#include <algorithm>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::size_t kForwardedValueBytes = 1024;

constexpr std::string_view kForwarded[] = {
    "anthropic-version", "user-agent", "x-app", "originator", "session-id", "x-client-request-id",
};

// Beta features by name, without the date that ends each: what Claude Code was seen to ask for and
// its neighbours of the same kind. None reaches beyond the conversation. (Not here, on purpose:
// mcp-client, code-execution, files-api, web-fetch, web-search, skills, computer-use.)
constexpr std::string_view kBetas[] = {
    "claude-code",
    "context-1m",
    "context-management",
    "effort",
    "extended-cache-ttl",
    "fine-grained-tool-streaming",
    "interleaved-thinking",
    "mid-conversation-system",
    "oauth",
    "prompt-caching-scope",
    "redact-thinking",
    "structured-outputs",
    "thinking-token-count",
    "token-counting",
    "token-efficient-tools",
};

bool IsDateChar(char c) { return (c >= '0' && c <= '9') || c == '-'; }

// "context-management-2025-06-27" and "claude-code-20250219" without their dates; a name without
// one stays as it is.
std::string_view WithoutDate(std::string_view beta) {
  std::string_view name = beta;
  while (!name.empty() && IsDateChar(name.back())) name.remove_suffix(1);
  std::size_t date_bytes = beta.size() - name.size();
  return date_bytes == 9 || date_bytes == 11 ? name : beta;  // -YYYYMMDD, -YYYY-MM-DD
}

std::optional<Refusal> CheckBetas(const RequestHead& head) {
  const std::string* betas = head.Find("anthropic-beta");
  if (betas == nullptr) return std::nullopt;
  for (std::string_view part : Split(*betas, ',')) {
    std::string_view beta = Trim(part);
    if (std::find(std::begin(kBetas), std::end(kBetas), WithoutDate(beta)) == std::end(kBetas)) {
      return Refusal{403, "egress_beta",
                     Text("not allowed from a sandboxed task: the beta feature \"",
                          Printable(beta).substr(0, 64), "\"")};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> CheckHost(uint16_t port, const RequestHead& head) {
  const std::string* host = head.Find("host");
  if (host != nullptr && (*host == Text("127.0.0.1:", port) || *host == Text("localhost:", port)))
    return std::nullopt;
  return Refusal{400, "egress_host",
                 Text("the Host header must be 127.0.0.1:", port,
                      ": the provider is fixed, no other host can be reached")};
}

std::optional<Refusal> CheckBodyHeaders(const RequestHead& head) {
  if (head.Find("content-encoding") != nullptr)
    return Refusal{415, "egress_http", "an encoded request body can't be read here"};
  const std::string* type = head.Find("content-type");
  if (type == nullptr) return std::nullopt;
  std::string_view media = Trim(std::string_view(*type).substr(0, type->find(';')));
  if (media == "application/json") return std::nullopt;
  return Refusal{415, "egress_http", "the content type must be application/json"};
}

struct Place {
  std::string method;
  std::string path;
  std::string suffix;  // after the upstream's own prefix; empty: answered here
};

std::vector<Place> Places(const Route& route) {
  switch (route.api) {
    case WireApi::kAnthropicMessages:
      return {{"HEAD", "/", ""},
              {"POST", "/v1/messages", "/v1/messages"},
              {"POST", "/v1/messages/count_tokens", "/v1/messages/count_tokens"}};
    case WireApi::kOpenAiResponses:
      return {{"POST", "/v1/responses", "/responses"}};
    case WireApi::kOpenAiChat:
      return {{"POST", "/v1/chat/completions", "/chat/completions"}};
  }
  return {};
}

bool IsQueryAllowed(const Route& route, const RequestHead& head) {
  if (head.query.empty()) return true;
  return route.api == WireApi::kAnthropicMessages && head.query == "beta=true";
}

}  // namespace

std::variant<Endpoint, Refusal> FindEndpoint(const Route& route, uint16_t port,
                                             const RequestHead& head) {
  if (auto refusal = CheckHost(port, head)) return std::move(*refusal);
  std::vector<Place> places = Places(route);
  auto place = std::find_if(places.begin(), places.end(), [&head](const Place& candidate) {
    return candidate.method == head.method && candidate.path == head.path;
  });
  if (place == places.end() || !IsQueryAllowed(route, head)) {
    return Refusal{404, "egress_path",
                   Text("only the model calls of this task's program are relayed, not ",
                        Printable(head.method), " ", Printable(head.path).substr(0, 128))};
  }
  if (place->suffix.empty()) {
    bool has_body = head.is_chunked || head.content_length > 0;
    if (has_body) return Refusal{400, "egress_http", "this request has no body"};
    return Endpoint{true, ""};
  }
  if (auto refusal = CheckBodyHeaders(head)) return std::move(*refusal);
  if (auto refusal = CheckBetas(head)) return std::move(*refusal);
  std::string query = head.query.empty() ? "" : Text('?', head.query);
  return Endpoint{false, Text(route.upstream.Url(), place->suffix, query)};
}

std::vector<HeaderField> UpstreamHeaders(const Route& route, const RequestHead& head) {
  const std::string* accept = head.Find("accept");
  bool wants_events = accept != nullptr && *accept == "text/event-stream";
  std::vector<HeaderField> headers = {
      {"content-type", "application/json"},
      {"accept", wants_events ? "text/event-stream" : "application/json"},
      {"accept-encoding", "identity"},
  };
  for (std::string_view name : kForwarded) {
    const std::string* value = head.Find(name);
    if (value != nullptr && !value->empty() && value->size() <= kForwardedValueBytes)
      headers.push_back({std::string(name), *value});
  }
  const std::string* asked = head.Find("anthropic-beta");
  std::string betas = asked != nullptr ? *asked : "";
  const std::string& own = route.credential.beta;
  if (!own.empty() && betas.find(own) == std::string::npos)
    betas += betas.empty() ? own : Text(',', own);
  if (!betas.empty() && route.api == WireApi::kAnthropicMessages)
    headers.push_back({"anthropic-beta", betas});
  return headers;
}

}  // namespace taskcell::gateway

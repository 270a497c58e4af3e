#include "gateway/egress/endpoint.h"

#include <gtest/gtest.h>

#include <cctype>

#include "gateway/egress/routes.h"

namespace taskcell::gateway {
namespace {

Route RouteOf(WireApi api, std::string url) {
  Route route;
  route.api = api;
  Result<Upstream> upstream = ParseUpstream(url);
  if (upstream.ok()) route.upstream = std::move(upstream).value();
  return route;
}

RequestHead Head(std::string method, std::string path, std::string query = "",
                 std::vector<HeaderField> headers = {}) {
  RequestHead head;
  head.method = std::move(method);
  head.path = std::move(path);
  head.query = std::move(query);
  head.headers = std::move(headers);
  if (head.Find("host") == nullptr) head.headers.push_back({"host", "127.0.0.1:8080"});
  return head;
}

// The URL, or the code of the refusal.
std::string Lead(const Route& route, const RequestHead& head) {
  auto found = FindEndpoint(route, 8080, head);
  if (auto* refusal = std::get_if<Refusal>(&found)) return std::string(refusal->code);
  Endpoint endpoint = std::get<Endpoint>(found);
  return endpoint.is_local ? "local" : endpoint.url;
}

TEST(EndpointTest, EachProgramGetsWhatItNeeds) {
  Route messages = RouteOf(WireApi::kAnthropicMessages, "https://api.anthropic.com");
  EXPECT_EQ(Lead(messages, Head("HEAD", "/")), "local");
  EXPECT_EQ(Lead(messages, Head("POST", "/v1/messages", "beta=true")),
            "https://api.anthropic.com/v1/messages?beta=true");
  EXPECT_EQ(Lead(messages, Head("POST", "/v1/messages")), "https://api.anthropic.com/v1/messages");
  EXPECT_EQ(Lead(messages, Head("POST", "/v1/messages/count_tokens", "beta=true")),
            "https://api.anthropic.com/v1/messages/count_tokens?beta=true");
  Route responses = RouteOf(WireApi::kOpenAiResponses, "https://api.openai.com/v1");
  EXPECT_EQ(Lead(responses, Head("POST", "/v1/responses")), "https://api.openai.com/v1/responses");
  Route chat = RouteOf(WireApi::kOpenAiChat, "https://api.groq.com/openai/v1");
  EXPECT_EQ(Lead(chat, Head("POST", "/v1/chat/completions")),
            "https://api.groq.com/openai/v1/chat/completions");
}

TEST(EndpointTest, EverythingElseIsRefused) {
  Route messages = RouteOf(WireApi::kAnthropicMessages, "https://api.anthropic.com");
  Route responses = RouteOf(WireApi::kOpenAiResponses, "https://api.openai.com/v1");
  Route chat = RouteOf(WireApi::kOpenAiChat, "https://api.openai.com/v1");
  Route groq = RouteOf(WireApi::kOpenAiChat, "https://api.groq.com/openai/v1");
  struct Row {
    const Route* route;
    const char* method;
    const char* path;
    const char* query;
  } rows[] = {
      {&messages, "GET", "/v1/messages", ""},
      {&messages, "POST", "/v1/messages/", ""},
      {&messages, "POST", "/v1/messages", "beta=false"},
      {&messages, "POST", "/v1/messages", "beta=true&key=x"},
      {&messages, "POST", "/v1/messages", "key=x"},
      {&messages, "POST", "/v1/messages/batches", ""},
      {&messages, "POST", "/v1/files", ""},
      {&messages, "GET", "/v1/models", ""},
      {&messages, "POST", "/v1//messages", ""},
      {&messages, "POST", "/v1/./messages", ""},
      {&messages, "POST", "/v1/x/../messages", ""},
      {&messages, "POST", "/v1/%6dessages", ""},
      {&messages, "POST", "/V1/messages", ""},
      {&messages, "POST", "/v1/messages;x", ""},
      {&messages, "POST", "/v1/responses", ""},
      {&messages, "GET", "/", ""},
      {&messages, "DELETE", "/v1/messages", ""},
      {&responses, "GET", "/v1/responses/resp_1", ""},
      {&responses, "POST", "/v1/responses/resp_1/cancel", ""},
      {&responses, "POST", "/v1/responses", "stream=true"},
      {&responses, "HEAD", "/", ""},
      {&responses, "POST", "/v1/chat/completions", ""},
      {&groq, "POST", "/openai/v1/chat/completions", ""},  // the upstream's own
      {&chat, "POST", "/v1/responses", ""},
      {&chat, "POST", "/v1/embeddings", ""},
      {&chat, "GET", "/v1/models", ""},
      {&chat, "post", "/v1/chat/completions", ""},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Lead(*row.route, Head(row.method, row.path, row.query)), "egress_path")
        << row.method << " " << row.path << "?" << row.query;
  }
}

TEST(EndpointTest, OnlyTheCellsOwnListenerIsAHost) {
  Route chat = RouteOf(WireApi::kOpenAiChat, "https://api.openai.com/v1");
  auto lead = [&chat](const char* host) {
    return Lead(chat, Head("POST", "/v1/chat/completions", "", {{"host", host}}));
  };
  EXPECT_NE(lead("127.0.0.1:8080"), "egress_host");
  EXPECT_NE(lead("localhost:8080"), "egress_host");
  for (const char* host :
       {"", "127.0.0.1", "127.0.0.1:8081", "api.openai.com", "api.openai.com:8080", "127.1:8080",
        "[::1]:8080", "localhost.:8080", "localhost:8080@evil.example", "LOCALHOST:8080"})
    EXPECT_EQ(lead(host), "egress_host") << host;
  RequestHead none = Head("POST", "/v1/chat/completions");
  none.headers.clear();
  EXPECT_EQ(Lead(chat, none), "egress_host");
}

TEST(EndpointTest, BodiesAreJsonInPlainText) {
  Route chat = RouteOf(WireApi::kOpenAiChat, "https://api.openai.com/v1");
  auto lead = [&chat](const char* name, const char* value) {
    return Lead(chat, Head("POST", "/v1/chat/completions", "", {{name, value}}));
  };
  EXPECT_NE(lead("content-type", "application/json"), "egress_http");
  EXPECT_NE(lead("content-type", "application/json; charset=utf-8"), "egress_http");
  EXPECT_EQ(lead("content-type", "multipart/form-data; boundary=x"), "egress_http");
  EXPECT_EQ(lead("content-type", "application/x-www-form-urlencoded"), "egress_http");
  EXPECT_EQ(lead("content-encoding", "gzip"), "egress_http");
  EXPECT_EQ(lead("content-encoding", "zstd"), "egress_http");
}

TEST(EndpointTest, BetaFeaturesAreAnAllowList) {
  Route messages = RouteOf(WireApi::kAnthropicMessages, "https://api.anthropic.com");
  auto lead = [&messages](const char* betas) {
    return Lead(messages, Head("POST", "/v1/messages", "", {{"anthropic-beta", betas}}));
  };
  // As claude 2.1.197 sent it.
  EXPECT_NE(lead("claude-code-20250219,interleaved-thinking-2025-05-14,thinking-token-count-2026-"
                 "05-13,context-management-2025-06-27,prompt-caching-scope-2026-01-05,"
                 "mid-conversation-system-2026-04-07,effort-2025-11-24"),
            "egress_beta");
  // And with a stored OAuth token.
  EXPECT_NE(lead("claude-code-20250219,oauth-2025-04-20,interleaved-thinking-2025-05-14,"
                 "prompt-caching-scope-2026-01-05,extended-cache-ttl-2025-04-11"),
            "egress_beta");
  for (const char* betas :
       {"mcp-client-2025-04-04", "claude-code-20250219,code-execution-2025-05-22",
        "files-api-2025-04-14, claude-code-20250219", "web-fetch-2025-09-10", "skills-2025-10-02",
        "computer-use-2025-01-24", "", "claude-code-20250219,", "claude-code-20250219x",
        "claude-code-20250219-20250219", "effort-1"})
    EXPECT_EQ(lead(betas), "egress_beta") << betas;
}

// Each feature that reaches further, wherever it stands and however it is spelt.
TEST(EndpointTest, ABetaFeatureIsFoundWhereverItStands) {
  Route messages = RouteOf(WireApi::kAnthropicMessages, "https://api.anthropic.com");
  auto lead = [&messages](const std::string& betas) {
    return Lead(messages, Head("POST", "/v1/messages", "beta=true", {{"anthropic-beta", betas}}));
  };
  const std::string good = "claude-code-20250219";
  const std::string better = "effort-2025-11-24";
  for (const std::string bad :
       {"mcp-client-2025-04-04", "code-execution-2025-05-22", "files-api-2025-04-14",
        "web-fetch-2025-09-10", "web-search-2025-03-05", "skills-2025-10-02",
        "computer-use-2025-01-24", "a-new-feature-2026-01-01"}) {
    std::string upper = bad;
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    for (const std::string& feature : {bad, upper})
      for (const std::string& betas :
           {feature, good + "," + feature, feature + "," + good,
            good + "," + feature + "," + better, good + ",\t" + feature + " , " + better,
            good + "," + good + "," + feature})
        EXPECT_EQ(lead(betas), "egress_beta") << betas;
  }
  for (const std::string& betas : {good, good + "," + better, good + " ,\t" + better})
    EXPECT_NE(lead(betas), "egress_beta") << "control: " << betas;
}

TEST(UpstreamHeadersTest, OnlyListedHeadersGoUp) {
  Route messages = RouteOf(WireApi::kAnthropicMessages, "https://api.anthropic.com");
  RequestHead head = Head("POST", "/v1/messages", "",
                          {{"x-api-key", "k"},
                           {"authorization", "Bearer k"},
                           {"cookie", "k"},
                           {"anthropic-version", "2023-06-01"},
                           {"accept", "*/*"},
                           {"accept-encoding", "gzip"},
                           {"user-agent", std::string(1025, 'u')},
                           {"originator", std::string(1024, 'o')}});
  std::vector<std::string> names;
  for (const HeaderField& field : UpstreamHeaders(messages, head)) names.push_back(field.name);
  EXPECT_EQ(names, (std::vector<std::string>{"content-type", "accept", "accept-encoding",
                                             "anthropic-version", "originator"}));
}

}  // namespace
}  // namespace taskcell::gateway

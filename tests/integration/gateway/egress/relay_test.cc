#include <nlohmann/json.hpp>

#include "gateway/runtimes/plan_job.h"
#include "launcher/base/text.h"
#include "tests/integration/gateway/egress/broker_fixture.h"

namespace taskcell::gateway {
namespace {

using nlohmann::json;

class RelayTest : public BrokerTest {};

TEST_F(RelayTest, EachApiReachesTheProviderWithTheOneCredential) {
  struct Row {
    WireApi api;
    const char* path;
    const char* body;
    const char* header;
    std::string value;
  } rows[] = {
      {WireApi::kOpenAiChat, "/v1/chat/completions", kChatBody, "authorization",
       std::string("Bearer ") + kRealKey},
      {WireApi::kOpenAiResponses, "/v1/responses", kResponsesBody, "authorization",
       std::string("Bearer ") + kRealKey},
      {WireApi::kAnthropicMessages, "/v1/messages?beta=true", kMessagesBody, "x-api-key", kRealKey},
  };
  for (const Row& row : rows) {
    Cell cell = Attach(MakeRoute(row.api));
    std::size_t before = NewLog().size();
    HttpAnswer answer = Exchange(cell.port, Post(cell.port, row.path, row.body));
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_NE(answer.body.find("Hello from the provider."), std::string::npos) << answer.body;
    ASSERT_EQ(NewLog().size(), before + 1);
    LoggedRequest seen = NewLog().back();
    EXPECT_TRUE(seen.authorized);
    EXPECT_EQ(seen.All(row.header), std::vector<std::string>{row.value});
    EXPECT_EQ(seen.path, row.path);
    EXPECT_EQ(seen.body, row.body);
    EXPECT_EQ(seen.All("accept-encoding"), std::vector<std::string>{"identity"});
    EgressRecord record = cell.handle->Detach();
    EXPECT_EQ(record.totals.model_calls, 1U);
    EXPECT_EQ(record.totals.input_tokens, 11U);
    EXPECT_EQ(record.totals.output_tokens, 7U);
  }
}

// The provider counts a prompt's tokens for nothing and asks no model: a program that had such an
// answer alone has not been answered.
TEST_F(RelayTest, ACountOfTokensIsNoModelCall) {
  for (const auto& [mode, status] : {std::pair("", 200), {"/mode/404", 404}, {"/mode/429", 429}}) {
    SCOPED_TRACE(status);
    Cell cell = Attach(MakeRoute(WireApi::kAnthropicMessages, mode));
    const std::string request =
        Post(cell.port, "/v1/messages/count_tokens?beta=true", kMessagesBody);
    EXPECT_EQ(Exchange(cell.port, request).status, status);
    const EgressRecord record = cell.handle->Detach();
    ASSERT_EQ(record.requests.size(), 1U);
    EXPECT_EQ(record.requests[0].upstream_status, status);
    EXPECT_EQ(record.totals.model_calls, 0U);
    EXPECT_EQ(record.totals.model_not_found, 0U);
    EXPECT_EQ(record.totals.rate_limited, 0U);
  }
  Cell cell = Attach(MakeRoute(WireApi::kAnthropicMessages, "/mode/401"));
  const std::string request = Post(cell.port, "/v1/messages/count_tokens", kMessagesBody);
  EXPECT_EQ(Exchange(cell.port, request).status, 401);
  EXPECT_EQ(cell.handle->Detach().totals.auth_failures, 1U) << "it says that of the credential";
}

TEST_F(RelayTest, NoCredentialOrTraceOfTheCellGoesUp) {
  Cell cell = AttachChat();
  std::string headers =
      "Authorization: Bearer placeholder-1\r\nX-Api-Key: placeholder-2\r\n"
      "X-Goog-Api-Key: placeholder-3\r\nApi-Key: placeholder-4\r\nCookie: placeholder-5\r\n"
      "Proxy-Authorization: Basic placeholder-6\r\nProxy-Connection: placeholder-7\r\n"
      "Forwarded: for=placeholder-8\r\nX-Forwarded-For: placeholder-9\r\n"
      "X-Forwarded-Host: placeholder-10\r\nVia: placeholder-11\r\nOpenAI-Organization: "
      "placeholder-12\r\n"
      "X-Anything: placeholder-13\r\nTE: trailers\r\nRange: bytes=0-1\r\nX-HTTP-Method-Override: "
      "GET\r\n"
      "User-Agent: kept/1.0\r\n";
  HttpAnswer answer =
      Exchange(cell.port, Post(cell.port, "/v1/chat/completions", kChatBody, headers));
  ASSERT_EQ(answer.status, 200);
  ASSERT_EQ(NewLog().size(), 1U);
  LoggedRequest seen = NewLog().front();
  EXPECT_EQ(seen.All("user-agent"), std::vector<std::string>{"kept/1.0"});
  std::vector<std::string> names;
  for (const auto& [name, value] : seen.headers) {
    EXPECT_EQ(value.find("placeholder"), std::string::npos) << name;
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{"accept", "accept-encoding", "authorization",
                                      "content-length", "content-type", "host", "user-agent"}));
}

TEST_F(RelayTest, APlaceholderInABodyStaysAPlaceholder) {
  Cell cell = AttachChat();
  const std::string body =
      Text(R"({"model":"test-model","messages":[{"role":"user","content":")",
           PlaceholderCredential(Runtime::kOpenAiCompat, CredentialShape::kApiKey), R"("}]})");
  EXPECT_EQ(Exchange(cell.port, Post(cell.port, "/v1/chat/completions", body)).status, 200);
  ASSERT_EQ(NewLog().size(), 1U);
  EXPECT_EQ(NewLog().front().body, body);
}

TEST_F(RelayTest, AnOAuthTokenGoesAsBearerWithItsBeta) {
  Cell cell = Attach(MakeRoute(WireApi::kAnthropicMessages, "/mode/401", "sk-ant-oat01-token"));
  HttpAnswer answer =
      Exchange(cell.port, Post(cell.port, "/v1/messages", kMessagesBody,
                               "anthropic-beta: claude-code-20250219\r\nx-api-key: mine\r\n"));
  EXPECT_EQ(answer.status, 401);
  ASSERT_EQ(NewLog().size(), 1U);
  LoggedRequest seen = NewLog().front();
  EXPECT_EQ(seen.All("authorization"), std::vector<std::string>{"Bearer sk-ant-oat01-token"});
  EXPECT_TRUE(seen.All("x-api-key").empty());
  EXPECT_EQ(seen.All("anthropic-beta"),
            std::vector<std::string>{"claude-code-20250219,oauth-2025-04-20"});
  EXPECT_EQ(cell.handle->Detach().totals.auth_failures, 1U);
}

TEST_F(RelayTest, ALoginNamesItsAccountBesideItsToken) {
  Route route = MakeRoute(WireApi::kOpenAiResponses);
  route.credential.account = "acct-1";
  Cell cell = Attach(std::move(route));
  std::string request = Post(cell.port, "/v1/responses", kResponsesBody);
  request.insert(request.find("\r\n") + 2, "chatgpt-account-id: the-cells-own\r\n");
  EXPECT_EQ(Exchange(cell.port, request).status, 200);
  ASSERT_EQ(NewLog().size(), 1U);
  EXPECT_EQ(NewLog()[0].All("chatgpt-account-id"), std::vector<std::string>{"acct-1"});
}

TEST_F(RelayTest, TwoCellsEachHaveTheirOwnRoute) {
  Cell mine = AttachChat();
  Cell other = Attach(MakeRoute(WireApi::kOpenAiChat, "", "sk-of-another-account"));
  EXPECT_EQ(Chat(mine.port).status, 200);
  EXPECT_EQ(Chat(other.port).status, 401);
  EXPECT_EQ(Chat(mine.port).status, 200);
  ASSERT_EQ(NewLog().size(), 3U);
  EXPECT_EQ(NewLog()[1].All("authorization").front(), "Bearer sk-of-another-account");
  EXPECT_EQ(mine.handle->Detach().totals.auth_failures, 0U);
  EXPECT_EQ(other.handle->Detach().totals.auth_failures, 1U);
}

TEST_F(RelayTest, AToolConversationIsTheRecordedEvidence) {
  ProviderProcess provider(kRealKey, "soul");
  ASSERT_TRUE(provider.IsUp());
  RouteRequest request;
  request.provider = "openai";
  request.models = {"test-model"};
  request.secret = kRealKey;
  request.override_url = provider.Url("/v1");
  Result<Route> route = RouteFor(std::move(request));
  ASSERT_TRUE(route.ok());
  Cell cell = Attach(std::move(route).value());

  json body = {{"model", "test-model"},
               {"messages", {{{"role", "user"}, {"content", "go"}}}},
               {"tools",
                {{{"type", "function"},
                  {"function", {{"name", "read_file"}, {"parameters", json::object()}}}}}}};
  HttpClient client(cell.port);
  ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", body.dump())));
  json first = json::parse(client.Read().body);
  json call = first["choices"][0]["message"]["tool_calls"][0];
  EXPECT_EQ(call["function"]["name"], "read_file");
  EXPECT_EQ(cell.handle->Totals().steps, 1U);

  body["messages"].push_back(first["choices"][0]["message"]);
  body["messages"].push_back(
      {{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "I am a test."}});
  ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", body.dump())));
  json second = json::parse(client.Read().body);
  EXPECT_EQ(second["choices"][0]["message"]["content"], "SOUL.md says: I am a test.");

  EgressRecord record = cell.handle->Detach();
  ASSERT_EQ(record.requests.size(), 2U);
  EXPECT_EQ(record.requests[0].tools_called, std::vector<std::string>{"read_file"});
  EXPECT_EQ(record.requests[0].finish, "tool_calls");
  EXPECT_EQ(record.requests[1].finish, "stop");
  EXPECT_EQ(record.requests[1].model, "test-model");
  EXPECT_EQ(record.tools_offered, std::vector<std::string>{"read_file"});
  EXPECT_EQ(record.totals.steps, 1U);
  EXPECT_EQ(record.totals.tool_calls, 1U);
  EXPECT_EQ(record.totals.input_tokens, 22U);
  json text = json::parse(RecordJson(record));
  EXPECT_EQ(text["totals"]["steps"], 1);
  EXPECT_EQ(text["requests"][0]["tools_called"][0], "read_file");
}

TEST_F(RelayTest, RequestsThatComeTogetherAreAnsweredInOrder) {
  Cell cell = AttachChat();
  std::string one = Post(cell.port, "/v1/chat/completions", kChatBody);
  std::string refused = Post(cell.port, "/v1/chat/completions", "[]");
  HttpClient client(cell.port);
  ASSERT_TRUE(client.Send(one + refused + one + one));
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 400);
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(cell.handle->Detach().requests.size(), 4U);
}

TEST_F(RelayTest, AChunkedBodyIsSentOnWithItsLength) {
  Cell cell = AttachChat();
  std::string head =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:" + std::to_string(cell.port) +
      "\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n";
  HttpClient client(cell.port);
  ASSERT_TRUE(client.Send(head));
  EXPECT_EQ(client.Read().status, 100);
  for (char c : std::string(kChatBody)) ASSERT_TRUE(client.Send(std::string("1\r\n") + c + "\r\n"));
  ASSERT_TRUE(client.Send("0\r\n\r\n"));
  EXPECT_EQ(client.Read().status, 200);
  ASSERT_EQ(NewLog().size(), 1U);
  EXPECT_EQ(NewLog().front().body, kChatBody);
  EXPECT_TRUE(NewLog().front().All("transfer-encoding").empty());
}

TEST_F(RelayTest, ClaudesProbeIsAnsweredWithoutTheProvider) {
  Cell cell = Attach(MakeRoute(WireApi::kAnthropicMessages));
  std::string probe =
      "HEAD / HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(cell.port) + "\r\n\r\n";
  HttpClient client(cell.port);
  ASSERT_TRUE(client.Send(probe));
  EXPECT_EQ(client.Read().status, 200);
  ASSERT_TRUE(client.Send(Post(cell.port, "/v1/messages", kMessagesBody)));
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(NewLog().size(), 1U);
}

TEST_F(RelayTest, ProxiesOfTheEnvironmentAreIgnored) {
  ASSERT_EQ(::setenv("http_proxy", "http://127.0.0.1:9", 1), 0);
  ASSERT_EQ(::setenv("ALL_PROXY", "http://127.0.0.1:9", 1), 0);
  Cell cell = AttachChat();
  EXPECT_EQ(Chat(cell.port).status, 200);
  ASSERT_EQ(::unsetenv("http_proxy"), 0);
  ASSERT_EQ(::unsetenv("ALL_PROXY"), 0);
}

}  // namespace
}  // namespace taskcell::gateway

#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "tests/integration/gateway/egress/broker_fixture.h"

namespace taskcell::gateway {
namespace {

// What a hostile program in the cell sends; nothing of it may reach the provider.
class BrokerRefusalTest : public BrokerTest {};

TEST_F(BrokerRefusalTest, NothingAmbiguousReachesTheProvider) {
  Cell cell = AttachChat();
  std::string host = Text("Host: 127.0.0.1:", cell.port, "\r\n");
  std::string line = "POST /v1/chat/completions HTTP/1.1\r\n";
  std::string length = Text("Content-Length: ", sizeof kChatBody - 1, "\r\n");
  std::string chunked = Text("Transfer-Encoding: chunked\r\n");
  std::string body = Text("\r\n", kChatBody);
  struct Row {
    const char* name;
    std::string bytes;
    int status;
    const char* code;
  } rows[] = {
      {"both framings", line + host + length + chunked + body, 400, "egress_http"},
      {"both framings, reordered", line + host + chunked + length + body, 400, "egress_http"},
      {"two lengths", line + host + length + "Content-Length: 5\r\n" + body, 400, "egress_http"},
      {"two hosts", line + host + "Host: evil.example\r\n" + length + body, 400, "egress_http"},
      {"other host", line + "Host: evil.example\r\n" + length + body, 400, "egress_host"},
      {"no host", line + length + body, 400, "egress_host"},
      {"absolute form",
       Text("POST http://evil.example/v1/chat/completions HTTP/1.1\r\n", host, length, body), 400,
       "egress_http"},
      {"absolute form of the provider",
       Text("POST ", provider_->Url("/v1/chat/completions"), " HTTP/1.1\r\n", host, length, body),
       400, "egress_http"},
      {"CONNECT", "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", 400,
       "egress_http"},
      {"folded header", line + host + "X-A: b\r\n c\r\n" + length + body, 400, "egress_http"},
      {"bare line feeds", "POST /v1/chat/completions HTTP/1.1\n" + host + length + body, 400,
       "egress_http"},
      {"websocket", line + host + "Upgrade: websocket\r\nConnection: Upgrade\r\n" + length + body,
       400, "egress_upgrade"},
      {"h2c preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "egress_http"},
      {"TLS", std::string("\x16\x03\x01\x00\x05hello\n\n", 12), 400, "egress_http"},
      {"HTTP/1.0", "POST /v1/chat/completions HTTP/1.0\r\n" + host + length + body, 505,
       "egress_http"},
      {"key in the query", "POST /v1/chat/completions?key=x HTTP/1.1\r\n" + host + length + body,
       404, "egress_path"},
      {"stored objects", "GET /v1/chat/completions/c1 HTTP/1.1\r\n" + host + "\r\n", 404,
       "egress_path"},
      {"encoded body", line + host + "Content-Encoding: gzip\r\n" + length + body, 415,
       "egress_http"},
  };
  for (const Row& row : rows) {
    HttpAnswer answer = Exchange(cell.port, row.bytes);
    EXPECT_EQ(answer.status, row.status) << row.name << answer.body;
    EXPECT_NE(answer.head.find(Text("x-taskcell-egress: ", row.code)), std::string::npos)
        << row.name;
    EXPECT_NE(answer.body.find(row.code), std::string::npos) << row.name;
  }
  EXPECT_TRUE(NewLog().empty());
  EXPECT_EQ(cell.handle->Totals().refused, std::size(rows));
  // The control: the same pieces in the one form that is taken.
  EXPECT_EQ(Exchange(cell.port, line + host + length + body).status, 200);
  EXPECT_EQ(NewLog().size(), 1U);
}

TEST_F(BrokerRefusalTest, ASecondRequestCantChangeTheHost) {
  Cell cell = AttachChat();
  HttpClient client(cell.port);
  ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
  ASSERT_EQ(client.Read().status, 200);
  std::string second = Post(cell.port, "/v1/chat/completions", kChatBody);
  std::size_t at = second.find("127.0.0.1");
  second.replace(at, 9, "127.0.0.2");
  ASSERT_TRUE(client.Send(second));
  EXPECT_EQ(client.Read().status, 400);
  EXPECT_EQ(NewLog().size(), 1U);
}

TEST_F(BrokerRefusalTest, ASmuggledRequestStaysBytesOfABody) {
  Cell cell = AttachChat();
  std::string inner = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";
  // As a body: not JSON.
  EXPECT_EQ(Exchange(cell.port, Post(cell.port, "/v1/chat/completions", inner)).status, 400);
  // Behind a body: a request of its own, refused by its path or host.
  HttpClient client(cell.port);
  ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody) + inner));
  EXPECT_EQ(client.Read().status, 200);
  EXPECT_EQ(client.Read().status, 400);
  ASSERT_EQ(NewLog().size(), 1U);
  EXPECT_EQ(NewLog().front().body, kChatBody);
}

TEST_F(BrokerRefusalTest, RefusedBodiesAreAnsweredReadably) {
  struct Row {
    WireApi api;
    const char* path;
    std::string body;
    const char* code;
  } rows[] = {
      {WireApi::kAnthropicMessages, "/v1/messages?beta=true",
       R"({"model":"test-model","messages":[],"tools":[{"type":"web_search_20250305","name":"w"}]})",
       "egress_server_tool"},
      {WireApi::kOpenAiResponses, "/v1/responses",
       R"({"model":"test-model","store":false,"input":"x","tools":[{"type":"web_search"}]})",
       "egress_server_tool"},
      {WireApi::kOpenAiResponses, "/v1/responses",
       R"({"model":"test-model","store":false,"input":"x","background":true})", "egress_stored"},
      {WireApi::kOpenAiChat, "/v1/chat/completions", R"({"model":"other","messages":[]})",
       "egress_model"},
      {WireApi::kOpenAiChat, "/v1/chat/completions", R"({"model":"a","model":"test-model"})",
       "egress_duplicate_key"},
  };
  for (const Row& row : rows) {
    Cell cell = Attach(MakeRoute(row.api));
    HttpClient client(cell.port);
    ASSERT_TRUE(client.Send(Post(cell.port, row.path, row.body)));
    HttpAnswer answer = client.Read();
    const bool is_malformed = row.code == std::string("egress_duplicate_key");
    // The only status at which codex does not ask again.
    EXPECT_EQ(answer.status, is_malformed || row.api == WireApi::kOpenAiResponses ? 400 : 403);
    EXPECT_NE(answer.body.find(R"("error":{)"), std::string::npos);
    EXPECT_NE(answer.body.find(row.code), std::string::npos) << answer.body;
    EgressRecord record = cell.handle->Detach();
    ASSERT_EQ(record.requests.size(), 1U);
    EXPECT_EQ(record.requests[0].code, row.code);
    EXPECT_EQ(record.totals.refused, 1U);
    EXPECT_EQ(record.totals.model_calls, 0U);
  }
  EXPECT_TRUE(NewLog().empty());
}

TEST_F(BrokerRefusalTest, EachKindIsCountedWithItsHostAndReason) {
  Cell cell = AttachChat();
  for (std::size_t count = 0; count <= kEgressRequestsShown; ++count)
    ASSERT_EQ(Exchange(cell.port, Post(cell.port, "/v1/files", kChatBody)).status, 404);
  EXPECT_EQ(Exchange(cell.port, "GET http://evil.example/ HTTP/1.1\r\nHost: x\r\n\r\n").status,
            400);
  EXPECT_EQ(Exchange(cell.port,
                     "POST /v1/chat/completions HTTP/1.1\r\nHost: other.example\r\n"
                     "Content-Length: 2\r\n\r\n{}")
                .status,
            400);
  EXPECT_EQ(Chat(cell.port).status, 200) << "control: what is relayed is not counted";
  std::vector<std::string> kinds;
  for (const EgressRefusal& each : cell.handle->Detach().refusals)
    kinds.push_back(Text(each.host, ' ', each.code, ' ', each.count));
  EXPECT_EQ(kinds, (std::vector<std::string>{
                       Text("127.0.0.1 egress_path ", kEgressRequestsShown + 1),
                       "http://evil.example/ egress_http 1", "other.example egress_host 1"}));
}

TEST_F(BrokerRefusalTest, AddressesAreClassifiedWhenTheyAreDialled) {
  struct Row {
    const char* host;
    bool loopback;  // what the route says the address has to be
    int status;
  } rows[] = {
      {"127.0.0.1", false, 502},
      {"localhost", false, 502},  // a name that leads to loopback
      {"169.254.169.254", false, 502},
      {"192.0.2.1", true, 502},
      {"10.0.0.1", false, 502},
      // The controls; last, for a connection once made is used again.
      {"127.0.0.1", true, 200},
      {"localhost", true, 200},
  };
  // Loopback first: were it let through, the test would stop before a packet could leave the host.
  for (const Row& row : rows) {
    Route route = MakeRoute(WireApi::kOpenAiChat);
    route.upstream.host = row.host;
    route.upstream.loopback = row.loopback;
    Cell cell = Attach(std::move(route));
    HttpAnswer answer = Chat(cell.port);
    ASSERT_EQ(answer.status, row.status) << row.host << answer.body;
    ASSERT_EQ(answer.body.find("egress_address") != std::string::npos, row.status == 502)
        << row.host;
  }
  EXPECT_EQ(NewLog().size(), 2U);
}

TEST_F(BrokerRefusalTest, OnlyAListenerOfLoopbackIsTaken) {
  Result<UniqueFd> not_listening = sys::MakeSocket(AF_INET, SOCK_STREAM);
  ASSERT_TRUE(not_listening.ok());
  Result<std::unique_ptr<BrokerCell>> refused =
      broker_->Attach(std::move(not_listening).value(), MakeRoute(WireApi::kOpenAiChat));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, Kind::kViolation);
}

}  // namespace
}  // namespace taskcell::gateway

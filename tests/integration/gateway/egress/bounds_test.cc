#include <poll.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "gateway/config/prices.h"
#include "gateway/config/toml_document.h"
#include "gateway/egress/purse.h"
#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "tests/integration/gateway/egress/broker_fixture.h"
#include "tests/support/wait_for.h"

namespace taskcell::gateway {
namespace {

// Every bound at its limit and one past it.
class EgressBoundsTest : public BrokerTest {
 protected:
  Cell AttachWith(const std::function<void(EgressLimits*)>& change, const std::string& path = "") {
    Route route = MakeRoute(WireApi::kOpenAiChat, path);
    change(&route.limits);
    return Attach(std::move(route));
  }
};

// What is used up does not come back: no program is to try again, and it can read why.
void ExpectExhausted(const HttpAnswer& answer, const std::string& code) {
  EXPECT_EQ(answer.status, 403) << "a status that no client repeats";
  EXPECT_NE(answer.head.find("x-should-retry: false\r\n"), std::string::npos) << answer.head;
  EXPECT_NE(answer.head.find(Text("x-taskcell-egress: ", code, "\r\n")), std::string::npos);
  EXPECT_NE(answer.head.find("content-type: application/json\r\n"), std::string::npos);
  EXPECT_EQ(answer.head.find("retry-after"), std::string::npos);
  const nlohmann::json body = nlohmann::json::parse(answer.body, nullptr, false);
  ASSERT_FALSE(body.is_discarded()) << answer.body;
  EXPECT_EQ(body["error"]["code"], code);
  EXPECT_EQ(body["error"]["type"], "permission_error");
}

TEST(EgressLimitsTest, AreTheDocumentedOnes) {
  EgressLimits limits;
  EXPECT_EQ(limits.connections, 64U);
  EXPECT_EQ(limits.requests, 10'000U);
  EXPECT_EQ(limits.body_bytes, 32U << 20);
  EXPECT_EQ(kEgressHeadBytes, 32U << 10);
  EXPECT_EQ(limits.bytes_up, 256ULL << 20);
  EXPECT_EQ(limits.bytes_down, 256ULL << 20);
}

// A chat request whose head has exactly `bytes` bytes.
std::string WithHeadOf(uint16_t port, std::size_t bytes) {
  std::string plain = Post(port, "/v1/chat/completions", kChatBody, "X-Fill: \r\n");
  std::size_t head = plain.find("\r\n\r\n") + 4;
  return Post(port, "/v1/chat/completions", kChatBody,
              "X-Fill: " + std::string(bytes - head, 'f') + "\r\n");
}

TEST_F(EgressBoundsTest, HeadOf32KiB) {
  Cell cell = AttachChat();
  EXPECT_EQ(Exchange(cell.port, WithHeadOf(cell.port, kEgressHeadBytes)).status, 200);
  HttpAnswer over = Exchange(cell.port, WithHeadOf(cell.port, kEgressHeadBytes + 1));
  EXPECT_EQ(over.status, 431);
  EXPECT_NE(over.body.find("egress_head_size"), std::string::npos);
  // A head without an end is refused as well.
  EXPECT_EQ(Exchange(cell.port, "GET / HTTP/1.1\r\nX: " + std::string(40'000, 'x')).status, 431);
  EXPECT_EQ(NewLog().size(), 1U);
}

std::string BodyOf(std::size_t bytes) {
  std::string head = R"({"model":"test-model","user":")";
  return head + std::string(bytes - head.size() - 2, 'x') + R"("})";
}

TEST_F(EgressBoundsTest, BodyOf32MiB) {
  Cell cell = AttachChat();
  auto post = [&cell](std::size_t bytes) {
    return Post(cell.port, "/v1/chat/completions", BodyOf(bytes));
  };
  EXPECT_EQ(Exchange(cell.port, post(kEgressBodyBytes)).status, 200);
  HttpAnswer over = Exchange(cell.port, post(kEgressBodyBytes + 1));
  EXPECT_EQ(over.status, 413);
  EXPECT_NE(over.body.find("egress_body_size"), std::string::npos);
  EXPECT_EQ(NewLog().size(), 1U);
}

TEST_F(EgressBoundsTest, BodiesInMemory) {
  Cell cell = AttachWith([](EgressLimits* limits) { limits->held_body_bytes = 1000; });
  HttpClient holder(cell.port);
  std::string half = Post(cell.port, "/v1/chat/completions", BodyOf(600));
  ASSERT_TRUE(holder.Send(half.substr(0, half.size() - 1)));
  ASSERT_TRUE(test::WaitFor([&] { return cell.handle->Totals().bytes_up == half.size() - 1; }))
      << "600 bytes are to be held for a body";
  EXPECT_EQ(Exchange(cell.port, Post(cell.port, "/v1/chat/completions", BodyOf(400))).status, 200);
  HttpAnswer over = Exchange(cell.port, Post(cell.port, "/v1/chat/completions", BodyOf(401)));
  EXPECT_EQ(over.status, 503);
  EXPECT_NE(over.body.find("egress_memory"), std::string::npos);
  EXPECT_EQ(over.head.find("x-should-retry"), std::string::npos) << "it may work later";
  ASSERT_TRUE(holder.Send("}"));
  EXPECT_EQ(holder.Read().status, 200);
  EXPECT_EQ(Exchange(cell.port, Post(cell.port, "/v1/chat/completions", BodyOf(1000))).status, 200);
}

TEST_F(EgressBoundsTest, SixtyFourConnections) {
  Cell cell = AttachChat();
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (std::size_t count = 0; count < kEgressConnections; ++count) {
    clients.push_back(std::make_unique<HttpClient>(cell.port));
    ASSERT_TRUE(clients.back()->IsConnected());
  }
  std::string request = Post(cell.port, "/v1/chat/completions", kChatBody);
  for (auto& client : clients) ASSERT_TRUE(client->Send(request));
  for (auto& client : clients) EXPECT_EQ(client->Read().status, 200);
  HttpClient over(cell.port);
  HttpAnswer answer = over.Read();
  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find("egress_connections"), std::string::npos) << answer.body;
  EXPECT_EQ(answer.head.find("x-should-retry"), std::string::npos) << "it may work later";
  EXPECT_TRUE(over.IsClosed());
  EXPECT_EQ(cell.handle->Totals().connections_refused, 1U);
  // One that goes makes room for one.
  clients.pop_back();
  EXPECT_TRUE(test::WaitFor([&] { return Chat(cell.port).status == 200; }));
}

TEST_F(EgressBoundsTest, Requests) {
  Cell cell = AttachWith([](EgressLimits* limits) { limits->requests = 3; });
  for (int count = 0; count < 3; ++count) EXPECT_EQ(Chat(cell.port).status, 200);
  HttpAnswer over = Chat(cell.port);
  ExpectExhausted(over, "egress_requests");
  EXPECT_EQ(NewLog().size(), 3U);
}

// A call takes 11 tokens and gives 7: 8.1 cents here.
TEST_F(EgressBoundsTest, WhatItsAccountHasLeftForAllCellsThatItPaysFor) {
  constexpr uint64_t kMicrocents = 1'000'000;
  Purses purses;
  const Prices prices =
      ReadPrices(ParseToml("[taskcell.prices.test-model]\ninput = 100000\noutput = 1000000\n", "c")
                     .value())
          .value();
  auto attach = [&](const std::string& account) {
    Route route = MakeRoute(WireApi::kOpenAiChat);
    route.payment = {purses.Open(account), prices};
    route.payment.purse->Know(20 * kMicrocents, 2 * kMicrocents);
    return Attach(std::move(route));
  };
  Cell cell = attach("one");
  Cell beside = attach("one");
  Cell other = attach("two");
  EXPECT_EQ(Chat(cell.port).status, 200);
  EXPECT_EQ(Chat(beside.port).status, 200);
  EXPECT_FALSE(cell.handle->Totals().budget_spent);
  EXPECT_EQ(Chat(beside.port).status, 200) << "18.2 of 20 cents were spent";
  for (Cell* spent : {&cell, &beside}) {
    const HttpAnswer over = Chat(spent->port);
    EXPECT_EQ(over.status, 403);
    EXPECT_NE(over.body.find("egress_budget"), std::string::npos) << over.body;
    EXPECT_NE(over.body.find("monthly_budget_cents"), std::string::npos) << over.body;
    EXPECT_TRUE(spent->handle->Totals().budget_spent);
    EXPECT_EQ(spent->handle->Record().requests.back().code, "egress_budget");
  }
  EXPECT_EQ(Chat(other.port).status, 200);
  EXPECT_FALSE(other.handle->Totals().budget_spent);
  EXPECT_EQ(NewLog().size(), 4U) << "the provider saw no more";
}

TEST_F(EgressBoundsTest, RefusedRequestsCountToo) {
  Cell cell = AttachWith([](EgressLimits* limits) { limits->requests = 2; });
  EXPECT_EQ(Exchange(cell.port, "nonsense\r\n\r\n").status, 400);
  EXPECT_EQ(Chat(cell.port).status, 200);
  ExpectExhausted(Chat(cell.port), "egress_requests");
}

TEST_F(EgressBoundsTest, BytesFromTheCell) {
  std::size_t request = Post(65535, "/v1/chat/completions", kChatBody).size();
  Cell cell = AttachWith([request](EgressLimits* limits) { limits->bytes_up = 2 * request; });
  // Ports have four or five digits: fill up to the size taken above.
  std::string post = Post(cell.port, "/v1/chat/completions", kChatBody);
  std::string fill(request - post.size(), ' ');
  post = Post(cell.port, "/v1/chat/completions", kChatBody + fill);
  post = post.substr(0, request);
  HttpClient client(cell.port);
  for (int count = 0; count < 2; ++count) {
    ASSERT_TRUE(client.Send(post));
    EXPECT_EQ(client.Read().status, 200);
  }
  EXPECT_EQ(cell.handle->Totals().bytes_up, 2 * request);
  ASSERT_TRUE(client.Send("P"));
  HttpAnswer over = client.Read();
  ExpectExhausted(over, "egress_bytes");
}

TEST_F(EgressBoundsTest, BytesToTheCell) {
  Cell fits =
      AttachWith([](EgressLimits* limits) { limits->bytes_down = 32U << 20; }, "/mode/large");
  EXPECT_TRUE(Chat(fits.port).is_whole);
  EXPECT_EQ(fits.handle->Totals().bytes_down, 32U << 20);
  Cell over =
      AttachWith([](EgressLimits* limits) { limits->bytes_down = (32U << 20) - 1; }, "/mode/large");
  HttpAnswer cut = Chat(over.port);
  EXPECT_FALSE(cut.is_whole);
  EXPECT_LT(cut.body.size(), 32U << 20);
  // The next one is told so, and the provider is not asked.
  const std::size_t asked = NewLog().size();
  ExpectExhausted(Chat(over.port), "egress_bytes");
  EXPECT_EQ(NewLog().size(), asked);
  EXPECT_EQ(over.handle->Detach().requests.at(0).code, "egress_bytes");
}

// Reads to the end, slower than the provider sends; false when it stalls before.
bool ReadSlowlyToTheEnd(int fd) {
  std::vector<char> buffer(256 << 10);
  while (true) {
    Result<short> ready = sys::Poll(fd, POLLIN, kPatienceMs);
    if (!ready.ok() || ready.value() == 0) return false;
    if (::recv(fd, buffer.data(), buffer.size(), 0) <= 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(8));
  }
}

TEST_F(EgressBoundsTest, ASlowReaderIsCutAtTheLimitToo) {
  // Now and then the last bytes arrive while the transfer waits for the reader, and are refused
  // only when it goes on; it has to end then as well.
  for (int round = 0; round < 3; ++round) {
    Cell cell = AttachWith([](EgressLimits* limits) { limits->bytes_down = (32U << 20) - 1; },
                           "/mode/large");
    HttpClient client(cell.port);
    ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
    ASSERT_TRUE(ReadSlowlyToTheEnd(client.fd())) << "the answer stalled in round " << round;
    EXPECT_EQ(cell.handle->Detach().requests.at(0).code, "egress_bytes");
  }
}

TEST_F(EgressBoundsTest, ARequestHasToBeFinishedInTime) {
  Cell cell = AttachWith([](EgressLimits* limits) { limits->request_seconds = 1; });
  for (const char* begun : {"POST /v1/chat", "POST /v1/chat/completions HTTP/1.1\r\nHost: "}) {
    HttpClient client(cell.port);
    ASSERT_TRUE(client.Send(begun));
    const HttpAnswer over = client.Read();
    EXPECT_EQ(over.status, 408);
    EXPECT_EQ(over.head.find("x-should-retry"), std::string::npos) << over.head;
    EXPECT_TRUE(client.IsClosed());
  }
  HttpClient in_body(cell.port);
  std::string post = Post(cell.port, "/v1/chat/completions", kChatBody);
  ASSERT_TRUE(in_body.Send(post.substr(0, post.size() - 1)));
  EXPECT_EQ(in_body.Read().status, 408);
}

TEST_F(EgressBoundsTest, AnIdleConnectionIsClosed) {
  Cell cell = AttachWith([](EgressLimits* limits) { limits->keep_alive_seconds = 1; });
  HttpClient client(cell.port);
  EXPECT_TRUE(client.IsClosed());
  EXPECT_EQ(cell.handle->Totals().requests, 0U);
}

}  // namespace
}  // namespace taskcell::gateway

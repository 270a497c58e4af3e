#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "gateway/egress/broker.h"
#include "gateway/egress/routes.h"
#include "tests/integration/gateway/egress/http_client.h"
#include "tests/integration/gateway/egress/provider_process.h"

namespace taskcell::gateway {

inline constexpr char kRealKey[] = "sk-real-0123456789abcdef0123456789abcdef";

// A minimal body of each API that passes the judge.
inline constexpr char kChatBody[] =
    R"({"model":"test-model","messages":[{"role":"user","content":"go"}]})";
inline constexpr char kMessagesBody[] =
    R"({"model":"test-model","max_tokens":9,"messages":[{"role":"user","content":"go"}]})";
inline constexpr char kResponsesBody[] = R"({"model":"test-model","store":false,"input":"go"})";

// A broker, a loopback provider, and listeners that stand for cells.
class BrokerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  static void TearDownTestSuite();
  void SetUp() override;

  struct Cell {
    std::unique_ptr<BrokerCell> handle;
    uint16_t port = 0;
  };
  // A route to the provider; `path` is put before the API's own, such as "/mode/401".
  Route MakeRoute(WireApi api, const std::string& path = "", const std::string& key = kRealKey);
  Cell Attach(Route route);
  Cell AttachChat(const std::string& path = "") {
    return Attach(MakeRoute(WireApi::kOpenAiChat, path));
  }
  // What the provider has logged since SetUp.
  std::vector<LoggedRequest> NewLog() const;
  // Lets the provider's modes "slow" and "late" send their next event.
  static void ReleaseProvider();
  // Reads the answer of the mode "slow", whose next event is sent only once `release` was called.
  static void ExpectEachEventOnItsOwn(HttpClient& client, const std::function<void()>& release);
  // Sends a chat request that passes; the answer's status is 200 when the broker works.
  static HttpAnswer Chat(uint16_t port) {
    return Exchange(port, Post(port, "/v1/chat/completions", kChatBody));
  }

  static std::unique_ptr<ProviderProcess> provider_;
  std::unique_ptr<Broker> broker_;
  std::size_t logged_before_ = 0;
};

}  // namespace taskcell::gateway

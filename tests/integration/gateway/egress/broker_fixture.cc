#include "tests/integration/gateway/egress/broker_fixture.h"

#include "launcher/base/text.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway {

std::unique_ptr<ProviderProcess> BrokerTest::provider_;

void BrokerTest::SetUpTestSuite() {
  provider_ = std::make_unique<ProviderProcess>(kRealKey, "hello");
}

void BrokerTest::TearDownTestSuite() { provider_.reset(); }

void BrokerTest::SetUp() {
  ASSERT_TRUE(provider_->IsUp()) << "tests/support/provider.py did not start";
  logged_before_ = provider_->Log().size();
  Result<std::unique_ptr<Broker>> broker = Broker::Start();
  ASSERT_TRUE(broker.ok()) << broker.error().text;
  broker_ = std::move(broker).value();
}

Route BrokerTest::MakeRoute(WireApi api, const std::string& path, const std::string& key) {
  RouteRequest request;
  request.api = api;
  request.provider = api == WireApi::kAnthropicMessages ? "anthropic" : "openai";
  request.models = {"test-model"};
  request.secret = key;
  bool has_version = api == WireApi::kAnthropicMessages;
  request.override_url = provider_->Url(path + (has_version ? "" : "/v1"));
  Result<Route> route = RouteFor(std::move(request));
  if (!route.ok()) {
    ADD_FAILURE() << route.error().text;
    return Route();
  }
  return std::move(route).value();
}

BrokerTest::Cell BrokerTest::Attach(Route route) {
  Result<sys::LoopbackListener> listener = sys::ListenLoopback();
  if (!listener.ok()) {
    ADD_FAILURE() << listener.error().text;
    return {};
  }
  Cell cell;
  cell.port = listener->port;
  Result<std::unique_ptr<BrokerCell>> handle =
      broker_->Attach(std::move(listener->fd), std::move(route));
  if (handle.ok()) {
    cell.handle = std::move(handle).value();
  } else {
    ADD_FAILURE() << handle.error().text;
  }
  return cell;
}

void BrokerTest::ReleaseProvider() {
  const std::string release = "GET /release HTTP/1.1\r\nHost: provider\r\n\r\n";
  EXPECT_EQ(Exchange(provider_->port(), release).status, 200);
}

void BrokerTest::ExpectEachEventOnItsOwn(HttpClient& client, const std::function<void()>& release) {
  constexpr int kEvents = 40;
  for (int number = 0; number < kEvents; ++number) {
    ASSERT_TRUE(client.ReadUntil(Text(number % 2 == 0 ? "event " : ": ping ", number, ".")));
    release();
  }
  EXPECT_TRUE(client.Read().is_whole);
}

std::vector<LoggedRequest> BrokerTest::NewLog() const {
  std::vector<LoggedRequest> log = provider_->Log();
  log.erase(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(logged_before_));
  return log;
}

}  // namespace taskcell::gateway

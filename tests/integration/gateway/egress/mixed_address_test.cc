// Names that lead to a good address and to a bad one.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "tests/integration/gateway/egress/broker_fixture.h"
#include "tests/support/egress_world.h"
#include "tests/support/fixture.h"
#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

// Listens at an IPv6 address with a queue that is full: a connection to it is made only when
// TakeWhatIsSent makes room, and the kernel asks again.
class SlowListener {
 public:
  explicit SlowListener(const char* address) {
    place_.sin6_family = AF_INET6;
    EXPECT_EQ(::inet_pton(AF_INET6, address, &place_.sin6_addr), 1);
    listener_ = UniqueFd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    filler_ = UniqueFd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    socklen_t size = sizeof place_;
    auto* place = reinterpret_cast<struct sockaddr*>(&place_);
    EXPECT_EQ(::bind(listener_.get(), place, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
    EXPECT_EQ(::getsockname(listener_.get(), place, &size), 0);
    EXPECT_EQ(::connect(filler_.get(), place, size), 0);
  }

  uint16_t port() const { return ntohs(place_.sin6_port); }

  // Takes the connection that waits, and what comes first on it; empty when that is its end.
  std::string TakeWhatIsSent() {
    UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).Reset();
    Result<short> ready = sys::Poll(listener_.get(), POLLIN, kPatienceMs);
    EXPECT_TRUE(ready.ok() && ready.value() != 0) << "nobody connected";
    const UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ready = sys::Poll(peer.get(), POLLIN, kPatienceMs);
    EXPECT_TRUE(ready.ok() && ready.value() != 0) << "nothing was sent, nor closed";
    char bytes[4096];
    const ssize_t got = ::recv(peer.get(), bytes, sizeof bytes, 0);
    return {bytes, got > 0 ? static_cast<std::size_t>(got) : 0};
  }

 private:
  struct sockaddr_in6 place_ = {};
  UniqueFd listener_;
  UniqueFd filler_;
};

class BrokerWorldTest : public BrokerTest {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, for a network namespace");
    BrokerTest::SetUp();
  }

  // Runs `body` with a broker that lives in a small internet of the test's own.
  void RunInWorld(const std::function<void(test::EgressWorld&)>& body) {
    const test::TempDirectory directory("world");
    EXPECT_TRUE(test::EgressWorld::Run(directory.path(), [&](test::EgressWorld& world) {
      broker_ = Broker::Start().value();
      body(world);
      broker_.reset();
    }));
  }

  Route RouteTo(const std::string& host, const test::EgressWorld& world) {
    Route route = MakeRoute(WireApi::kOpenAiChat);
    route.upstream = {true, false, host, 443, ""};
    route.uplink.certificates = std::make_shared<const std::string>(world.Certificate());
    return route;
  }
};

TEST_F(BrokerWorldTest, ABadAddressThatIsTriedRefusesTheName) {
  RunInWorld([this](test::EgressWorld& world) {
    std::ofstream(world.At("key")) << "x";  // the server looks at it at each POST
    Cell cell = Attach(RouteTo("mixed.example.org", world));
    for (int again = 0; again < 2; ++again) {
      const HttpAnswer answer = Chat(cell.port);
      EXPECT_EQ(answer.status, 502);
      EXPECT_NE(answer.body.find("egress_address"), std::string::npos) << answer.body;
    }
    EXPECT_TRUE(world.Log().empty()) << "neither address was connected to";
    Cell good = Attach(RouteTo("files.example.org", world));
    EXPECT_EQ(Chat(good.port).status, 401) << "control: an answer of the server";
    EXPECT_EQ(world.ConnectionsTo(test::EgressWorld::kPublic), 1U);
  });
}

// The good one takes long to connect, so that the bad one is tried beside it.
TEST_F(BrokerWorldTest, NothingIsSentOnAConnectionMadeBesideABadAddress) {
  RunInWorld([this](test::EgressWorld& world) {
    constexpr const char* kGood = "2606:2800:220:1::1";
    ASSERT_EQ(test::Run({"ip", "address", "add", Text(kGood, "/128"), "dev", "lo"}).status, 0);
    for (const bool is_mixed : {false, true}) {
      SCOPED_TRACE(is_mixed);
      const std::string name = is_mixed ? "mixed.slow.example.org" : "slow.example.org";
      std::ofstream(world.At("hosts"), std::ios::app)
          << kGood << ' ' << name << '\n'
          << (is_mixed ? Text("127.0.0.1 ", name, "\n") : "");
      SlowListener listener(kGood);
      Route route = RouteTo(name, world);
      route.upstream.https = false;
      route.upstream.port = listener.port();
      Cell cell = Attach(std::move(route));
      HttpClient client(cell.port);
      ASSERT_TRUE(client.Send(Post(cell.port, "/v1/chat/completions", kChatBody)));
      std::this_thread::sleep_for(std::chrono::milliseconds(600));  // the second address is tried
      const std::string sent = listener.TakeWhatIsSent();
      EXPECT_EQ(sent.empty(), is_mixed) << sent;
      if (is_mixed) {
        EXPECT_NE(client.Read().body.find("egress_address"), std::string::npos);
      }
    }
  });
}

}  // namespace
}  // namespace taskcell::gateway

// The broker's listener for tunnels, byte by byte: what passes, what it costs, and how each bound
// ends it. The far side is a plain socket on a public address of the test's own.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "gateway/egress/broker.h"
#include "gateway/egress/connect_request.h"
#include "launcher/base/text.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/stream.h"
#include "tests/integration/gateway/egress/http_client.h"
#include "tests/integration/gateway/egress/proxy_process.h"
#include "tests/support/client_hello_bytes.h"
#include "tests/support/egress_world.h"
#include "tests/support/fixture.h"

namespace taskcell::gateway {
namespace {

constexpr uint16_t kFarPort = 8443;
constexpr std::string_view kAsk =
    "CONNECT files.example.org:8443 HTTP/1.1\r\nHost: files.example.org:8443\r\n\r\n";
constexpr std::string_view kOpened = "HTTP/1.1 200 Connection established\r\n\r\n";
constexpr std::string_view kAlert("\x15\x03\x03\x00\x02\x02\x31", 7);

// Everything `fd` gives until its end, or until `enough` bytes came.
std::string ReadFrom(int fd, std::size_t enough = ~std::size_t{0}) {
  std::string bytes;
  std::array<char, 65536> buffer = {};
  while (bytes.size() < enough) {
    ssize_t got = ::recv(fd, buffer.data(), std::min(buffer.size(), enough - bytes.size()), 0);
    if (got <= 0) break;
    bytes.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return bytes;
}

class TunnelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to make a network of its own");
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  // Runs `body` in the test's own network, with a broker whose cell may reach the far side.
  void Run(const EgressLimits& limits, const std::function<void()>& body) {
    bool is_made = test::EgressWorld::Run(directory_, [&](test::EgressWorld&) {
      Listen();
      auto broker = Broker::Start();
      ASSERT_TRUE(broker.ok()) << broker.error().text;
      broker_ = broker.value().get();
      sys::LoopbackListener listener = sys::ListenLoopback().value();
      port_ = listener.port;
      CellWays ways;
      ways.tunnel_listener = std::move(listener.fd);
      ways.route.limits = limits;
      ways.allowed = {{"files.example.org", kFarPort}};
      auto cell = broker.value()->Attach(std::move(ways));
      ASSERT_TRUE(cell.ok()) << cell.error().text;
      cell_ = std::move(cell).value();
      body();
      cell_.reset();
    });
    ASSERT_TRUE(is_made);
  }

  void Listen() {
    far_ = sys::MakeSocket(AF_INET, SOCK_STREAM).value();
    struct sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(kFarPort);
    address.sin_addr.s_addr = ::inet_addr(test::EgressWorld::kPublic);
    const void* generic = &address;
    ASSERT_EQ(::bind(far_.get(), static_cast<const struct sockaddr*>(generic), sizeof address), 0);
    ASSERT_EQ(::listen(far_.get(), 64), 0);
  }

  // The far side's end of the next tunnel.
  UniqueFd Accept() {
    if (sys::Poll(far_.get(), POLLIN, kPatienceMs).value() == 0) return {};
    return sys::Accept(far_.get()).value();
  }
  // Whether nothing has come to the far side.
  bool NobodyCame() { return sys::Poll(far_.get(), POLLIN, 300).value() == 0; }

  // What the far side says first, where it is a server that takes the ClientHello as it is.
  static constexpr std::string_view kTaken = "\x15";

  // Asks for the tunnel and sends its ClientHello, which the far side reads and answers.
  UniqueFd Open(HttpClient& client) {
    UniqueFd far = OpenUnanswered(client);
    EXPECT_TRUE(sys::SendNow(far.get(), kTaken).ok());
    EXPECT_EQ(ReadFrom(client.fd(), kTaken.size()), kTaken);
    return far;
  }
  UniqueFd OpenUnanswered(HttpClient& client) {
    EXPECT_TRUE(client.Send(kAsk));
    EXPECT_EQ(ReadFrom(client.fd(), kOpened.size()), kOpened);
    const std::string hello = test::ClientHelloFor("files.example.org");
    EXPECT_TRUE(client.Send(hello));
    UniqueFd far = Accept();
    EXPECT_EQ(ReadFrom(far.get(), hello.size()), hello);
    return far;
  }

  // The record's tunnel once it has a code other than `code`, or after a while.
  EgressTunnel TunnelOtherThan(std::string_view code) {
    for (int waited = 0; waited < kPatienceMs; waited += 20) {
      EgressRecord record = cell_->Record();
      if (!record.tunnels.empty() && record.tunnels.back().code != code)
        return record.tunnels.back();
      (void)::usleep(20'000);
    }
    ADD_FAILURE() << "nothing was noted";
    return {};
  }

  std::string directory_ = "/tmp/taskcell-tunnel-XXXXXX";
  UniqueFd far_;
  uint16_t port_ = 0;
  Broker* broker_ = nullptr;  // while Run lasts
  std::unique_ptr<BrokerCell> cell_;
};

TEST_F(TunnelTest, BytesPassBothWaysAndEachSideEndsItsOwn) {
  Run({}, [&] {
    HttpClient client(port_);
    UniqueFd far = Open(client);
    const std::string up(3 << 20, 'u');
    const std::string down(5 << 20, 'd');
    std::thread sender([&] {
      EXPECT_TRUE(client.Send(up));
      EXPECT_TRUE(sys::EndSending(client.fd()).ok());
    });
    EXPECT_EQ(ReadFrom(far.get()), up);  // to its end: the half close has come through
    sender.join();
    std::thread answerer([&] {
      EXPECT_EQ(::send(far.get(), down.data(), down.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(down.size()));
      far.Reset();
    });
    EXPECT_EQ(ReadFrom(client.fd()), down);
    answerer.join();
    EgressRecord record = cell_->Detach();
    ASSERT_EQ(record.tunnels.size(), 1U);
    EXPECT_EQ(record.tunnels[0].code, "");
    EXPECT_EQ(record.tunnels[0].bytes_up,
              up.size() + test::ClientHelloFor("files.example.org").size());
    EXPECT_EQ(record.tunnels[0].bytes_down, kTaken.size() + down.size());
    EXPECT_EQ(record.totals.tunnels, 1U);
    EXPECT_EQ(record.totals.tunnels_refused, 0U);
  });
}

TEST_F(TunnelTest, TheDecisionIsNotedBeforeTheFarSideHearsAnything) {
  Run({}, [&] {
    HttpClient client(port_);
    ASSERT_TRUE(client.Send(kAsk));
    EXPECT_EQ(ReadFrom(client.fd(), kOpened.size()), kOpened);
    // A ClientHello byte by byte; until its last one nobody is spoken to.
    const std::string hello = test::ClientHelloFor("FILES.example.org");
    for (char byte : hello.substr(0, hello.size() - 1))
      ASSERT_TRUE(client.Send(std::string_view(&byte, 1)));
    EXPECT_TRUE(NobodyCame());
    EXPECT_TRUE(cell_->Record().tunnels.empty());
    ASSERT_TRUE(client.Send(hello.substr(hello.size() - 1)));
    UniqueFd far = Accept();
    ASSERT_EQ(cell_->Record().tunnels.size(), 1U);
    EXPECT_EQ(cell_->Record().tunnels[0].host, "files.example.org");
    EXPECT_EQ(ReadFrom(far.get(), hello.size()), hello);
  });
}

TEST_F(TunnelTest, ARequestAndItsHelloMayComeAtOnceButNothingElseInstead) {
  Run({}, [&] {
    HttpClient client(port_);
    const std::string hello = test::ClientHelloFor("files.example.org");
    ASSERT_TRUE(client.Send(std::string(kAsk) + hello));
    UniqueFd far = Accept();
    EXPECT_EQ(ReadFrom(far.get(), hello.size()), hello);
    for (const std::string& other :
         {std::string("CONNECT other.example.org:443 HTTP/1.1\r\n\r\n"), std::string("SSH-2.0-x"),
          test::ClientHelloFor("other.example.org"),
          test::Record(test::HelloMessage(test::OtherExtensions()))}) {
      HttpClient hostile(port_);
      ASSERT_TRUE(hostile.Send(std::string(kAsk) + other));
      EXPECT_EQ(ReadFrom(hostile.fd()), std::string(kOpened) + std::string(kAlert));
    }
    EXPECT_TRUE(NobodyCame());
    EXPECT_EQ(cell_->Record().totals.tunnels_refused, 4U);
  });
}

// RFC 8446 section 4.1.4: the server may ask for another ClientHello, and then that one counts.
TEST_F(TunnelTest, ASecondClientHelloMustNameTheHostAsWell) {
  using namespace std::string_literals;
  const std::string retry = test::Record(
      "\x02" + test::Behind(3,
                            "\x03\x03"
                            "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
                            "\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c\0"s));
  const std::string change = "\x14\x03\x03\0\x01\x01"s;
  Run({}, [&] {
    HttpClient honest(port_);
    UniqueFd far = OpenUnanswered(honest);
    ASSERT_TRUE(sys::SendNow(far.get(), retry).ok());
    EXPECT_EQ(ReadFrom(honest.fd(), retry.size()), retry);
    const std::string second = change + test::ClientHelloFor("files.example.org");
    ASSERT_TRUE(honest.Send(second + "more"));
    EXPECT_EQ(ReadFrom(far.get(), second.size() + 4), second + "more");

    for (bool waits : {true, false}) {
      HttpClient hostile(port_);
      UniqueFd front = OpenUnanswered(hostile);
      const std::string other = change + test::ClientHelloFor("other.example.org");
      // One that does not wait to be asked is made to.
      if (!waits) {
        ASSERT_TRUE(hostile.Send(other));
      }
      ASSERT_TRUE(sys::SendNow(front.get(), retry).ok());
      if (waits) {
        EXPECT_EQ(ReadFrom(hostile.fd(), retry.size()), retry);
        ASSERT_TRUE(hostile.Send(other));
      }
      EXPECT_EQ(ReadFrom(front.get()), "") << "not a byte of it";
      const std::string heard = ReadFrom(hostile.fd());
      EXPECT_TRUE(heard.ends_with(kAlert)) << heard.size();
      EXPECT_EQ(cell_->Record().tunnels.back().code, "egress_sni");
    }
    EXPECT_EQ(cell_->Record().totals.tunnels_refused, 2U);
    EXPECT_EQ(cell_->Record().tunnels.front().code, "");
  });
}

TEST_F(TunnelTest, AHeadOfEightKiBIsReadAndOneByteMoreIsRefused) {
  Run({}, [&] {
    auto padded = [](std::size_t size) {
      std::string head(kAsk.substr(0, kAsk.size() - 2));
      head += "X: " + std::string(size - head.size() - 7, 'x') + "\r\n\r\n";
      return head;
    };
    ASSERT_EQ(padded(kConnectHeadBytes).size(), kConnectHeadBytes);
    HttpClient fits(port_);
    ASSERT_TRUE(fits.Send(padded(kConnectHeadBytes)));
    EXPECT_EQ(ReadFrom(fits.fd(), kOpened.size()), kOpened);
    HttpAnswer over = Exchange(port_, padded(kConnectHeadBytes + 1));
    EXPECT_EQ(over.status, 431);
    EXPECT_NE(over.head.find("x-taskcell-egress: egress_head_size"), std::string::npos);
    EXPECT_NE(over.body.find("\"code\":\"egress_head_size\""), std::string::npos);
  });
}

TEST_F(TunnelTest, TheTasksBytesAreCountedEachWayAndEndTheTunnelThatIsOneOver) {
  EgressLimits limits;
  const std::size_t asked = kAsk.size() + test::ClientHelloFor("files.example.org").size();
  limits.bytes_up = asked + 10;
  limits.bytes_down = kTaken.size() + 10;
  for (bool is_up : {true, false}) {
    Run(limits, [&] {
      HttpClient client(port_);
      UniqueFd far = Open(client);
      const int from = is_up ? client.fd() : far.get();
      const int to = is_up ? far.get() : client.fd();
      ASSERT_EQ(::send(from, "0123456789", 10, MSG_NOSIGNAL), 10);
      EXPECT_EQ(ReadFrom(to, 10), "0123456789");
      ASSERT_EQ(::send(from, "x", 1, MSG_NOSIGNAL), 1);
      EXPECT_EQ(ReadFrom(far.get()), "");
      EXPECT_EQ(ReadFrom(client.fd()), kAlert);
      EXPECT_EQ(TunnelOtherThan("").code, "egress_bytes");
      const EgressRecord record = cell_->Record();
      EXPECT_EQ(record.totals.tunnels_refused, 1U);
      ASSERT_EQ(record.refusals.size(), 1U);
      EXPECT_EQ(record.refusals[0].code, "egress_bytes");
    });
  }
}

TEST_F(TunnelTest, WhoSaysNothingForTooLongIsCut) {
  EgressLimits limits;
  limits.hello_seconds = 1;
  limits.tunnel_idle_seconds = 1;
  limits.request_seconds = 1;
  Run(limits, [&] {
    HttpClient slow(port_);
    ASSERT_TRUE(slow.Send(kAsk.substr(0, 20)));
    EXPECT_EQ(slow.Read().status, 408);
    HttpClient mute(port_);
    ASSERT_TRUE(mute.Send(kAsk));
    EXPECT_EQ(ReadFrom(mute.fd()), std::string(kOpened) + std::string(kAlert));
    EXPECT_EQ(TunnelOtherThan("").code, "egress_timeout");
    HttpClient idle(port_);
    UniqueFd far = Open(idle);
    EXPECT_EQ(ReadFrom(far.get()), "");
    EXPECT_EQ(TunnelOtherThan("").code, "egress_idle");
  });
}

TEST_F(TunnelTest, ConnectionsOverTheBoundAreToldSo) {
  EgressLimits limits;
  limits.connections = 1;
  Run(limits, [&] {
    HttpClient first(port_);
    UniqueFd far = Open(first);
    EXPECT_EQ(Exchange(port_, kAsk).status, 503);
    EXPECT_EQ(cell_->Totals().connections_refused, 1U);
    EXPECT_TRUE(NobodyCame());
  });
}

TEST_F(TunnelTest, AHostThatIsNotThereIsCutWithItsCode) {
  Run({}, [&] {
    far_.Reset();
    HttpClient client(port_);
    ASSERT_TRUE(client.Send(std::string(kAsk) + test::ClientHelloFor("files.example.org")));
    EXPECT_EQ(ReadFrom(client.fd()), std::string(kOpened) + std::string(kAlert));
    EXPECT_EQ(TunnelOtherThan("").code, "egress_unreachable");
  });
}

// The name is one that nobody here can resolve, and what the proxy leads to is on loopback: both
// are its business.
TEST_F(TunnelTest, ThroughTheOperatorsProxyItIsAskedForExactlyThePlaceOfTheList) {
  Run({}, [&] {
    sys::LoopbackListener far = sys::ListenLoopback().value();
    far_ = std::move(far.fd);
    const std::string ask = "CONNECT nowhere.example.com:443 HTTP/1.1\r\n\r\n";
    const std::string hello = test::ClientHelloFor("nowhere.example.com");
    for (int refuse : {0, 403}) {
      Proxy proxy(directory_, far.port, refuse);
      CellWays ways;
      sys::LoopbackListener listener = sys::ListenLoopback().value();
      ways.tunnel_listener = std::move(listener.fd);
      ways.allowed = {{"nowhere.example.com", 443}};
      ways.route.uplink.proxy = proxy.Url();
      auto cell = broker_->Attach(std::move(ways));
      ASSERT_TRUE(cell.ok()) << cell.error().text;
      cell_ = std::move(cell).value();
      HttpClient client(listener.port);
      ASSERT_TRUE(client.Send(ask));
      EXPECT_EQ(ReadFrom(client.fd(), kOpened.size()), kOpened);
      EXPECT_EQ(proxy.Log(), "") << "not before the ClientHello has passed";
      ASSERT_TRUE(client.Send(hello));
      if (refuse != 0) {
        EXPECT_EQ(ReadFrom(client.fd()), kAlert);
        EXPECT_EQ(TunnelOtherThan("").code, "egress_unreachable");
        continue;
      }
      UniqueFd server = Accept();
      EXPECT_EQ(ReadFrom(server.get(), hello.size()), hello);
      ASSERT_TRUE(sys::SendNow(server.get(), kTaken).ok());
      EXPECT_EQ(ReadFrom(client.fd(), kTaken.size()), kTaken) << "nothing of the proxy's answer";
      EXPECT_NE(proxy.Log().find("CONNECT nowhere.example.com:443 HTTP/1.1"), std::string::npos)
          << proxy.Log();
      // Another place, or another server name, does not even come to the proxy.
      HttpClient other(listener.port);
      ASSERT_TRUE(other.Send(ask + test::ClientHelloFor("other.example.com")));
      EXPECT_EQ(ReadFrom(other.fd()), std::string(kOpened) + std::string(kAlert));
      EXPECT_EQ(Exchange(listener.port, "CONNECT 10.0.0.1:443 HTTP/1.1\r\n\r\n").status, 400);
      const std::string log = proxy.Log();
      EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
    }
  });
}

TEST_F(TunnelTest, DetachingEndsOpenTunnelsOnBothSides) {
  Run({}, [&] {
    HttpClient client(port_);
    UniqueFd far = Open(client);
    EgressRecord record = cell_->Detach();
    EXPECT_EQ(ReadFrom(far.get()), "");
    EXPECT_EQ(ReadFrom(client.fd()), "");
    EXPECT_EQ(record.tunnels.at(0).code, "egress_detached");
    EXPECT_FALSE(HttpClient(port_).IsConnected());
  });
}

}  // namespace
}  // namespace taskcell::gateway

#include "gateway/runtimes/loop/exchange.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway::loop {
namespace {

// A server for one connection: reads up to the end of the request, writes `answer`, closes.
class OneAnswer {
 public:
  OneAnswer(std::string answer, std::size_t body_bytes, bool hang = false)
      : listener_(sys::ListenLoopback().value()), thread_([=, this] {
          UniqueFd fd = sys::Accept(listener_.fd.get()).value();
          std::array<char, 4096> buffer;
          while (request_.find("\r\n\r\n") == std::string::npos ||
                 request_.size() - request_.find("\r\n\r\n") - 4 < body_bytes) {
            std::size_t size = sys::Read(fd.get(), buffer).value();
            if (size == 0) break;
            request_.append(buffer.data(), size);
          }
          (void)sys::WriteAll(fd.get(), answer);
          if (hang) (void)sys::Poll(fd.get(), POLLIN, 5000);
        }) {}
  ~OneAnswer() {
    if (thread_.joinable()) thread_.join();
  }
  uint16_t port() const { return listener_.port; }
  const std::string& Request() {
    thread_.join();
    return request_;
  }

 private:
  sys::LoopbackListener listener_;
  std::string request_;
  std::thread thread_;
};

TEST(ExchangeTest, OneRequestIsSentAndItsAnswerRead) {
  OneAnswer server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", 7);
  Result<HttpAnswer> answer = Post({server.port(), "/v1"}, "/chat/completions", "k", "{\"a\":1}");
  ASSERT_TRUE(answer.ok()) << answer.error().text;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "{}");
  const std::string& request = server.Request();
  EXPECT_EQ(request.substr(0, request.find("\r\n")), "POST /v1/chat/completions HTTP/1.1");
  EXPECT_NE(request.find("authorization: Bearer k\r\n"), std::string::npos);
  EXPECT_NE(request.find("content-length: 7\r\n"), std::string::npos);
  EXPECT_EQ(request.substr(request.size() - 7), "{\"a\":1}");
}

TEST(ExchangeTest, ARedirectIsAnAnswerAndIsNotFollowed) {
  OneAnswer other("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 0);
  OneAnswer server(Text("HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:", other.port(),
                        "/\r\ncontent-length: 0\r\n\r\n"),
                   2);
  EXPECT_EQ(Post({server.port(), ""}, "/x", "k", "{}")->status, 307);
  (void)Post({other.port(), ""}, "/mark", "k", "");  // what `other` sees first is this
  EXPECT_NE(other.Request().find("POST /mark"), std::string::npos);
}

TEST(ExchangeTest, AnAnswerBeforeTheWholeRequestIsRead) {
  OneAnswer server("HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n", 10, true);
  std::string large(8U << 20U, 'x');  // more than the socket's buffers take
  Result<HttpAnswer> answer = Post({server.port(), ""}, "/x", "k", large);
  ASSERT_TRUE(answer.ok()) << answer.error().text;
  EXPECT_EQ(answer->status, 413);
}

TEST(ExchangeTest, SilenceCutsAndNobodyAreErrors) {
  auto start = std::chrono::steady_clock::now();
  OneAnswer silent("", 2, true);
  Result<HttpAnswer> answer = Post({silent.port(), ""}, "/x", "k", "{}", 200);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.error().text.find("in time"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  OneAnswer cut("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", 2);
  EXPECT_FALSE(Post({cut.port(), ""}, "/x", "k", "{}").ok());
  uint16_t free_port = sys::ListenLoopback()->port;  // closed again at once
  EXPECT_FALSE(Post({free_port, ""}, "/x", "k", "{}").ok());
}

TEST(ExchangeTest, OnlyTheLoopbackIsAPeer) {
  Peer peer = ParsePeer("http://127.0.0.1:4321/v1/").value();
  EXPECT_EQ(peer.port, 4321);
  EXPECT_EQ(peer.path, "/v1");
  EXPECT_EQ(ParsePeer("http://127.0.0.1:65535")->path, "");
  for (const char* url :
       {"", "https://127.0.0.1:1/", "http://127.0.0.1/", "http://127.0.0.1:0/",
        "http://127.0.0.1:65536", "http://127.0.0.1:80@evil/", "http://localhost:80/",
        "http://127.0.0.10:80/", "http://127.0.0.1:80/a b", "http://127.0.0.1:80/\r\nx: y",
        "http://127.0.0.1:80?x", "http://10.0.0.1:80/"}) {
    EXPECT_FALSE(ParsePeer(url).ok()) << url;
  }
}

}  // namespace
}  // namespace taskcell::gateway::loop

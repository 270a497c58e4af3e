#include "probe/engine/http.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <future>

#include "launcher/sys/file.h"
#include "launcher/sys/socket.h"
#include "tests/support/fake_engine.h"
#include "tests/support/fixture.h"

namespace taskcell::probe {
namespace {

using test::FakeEngine;

Result<HttpAnswer> Ask(const std::string& socket_path, HttpRequest request = {"GET", "/x", {}}) {
  HttpClient client(Endpoint{socket_path, "a test", {}});
  return client.Call(request);
}

Result<HttpAnswer> AskRaw(const std::string& raw) {
  FakeEngine engine([&](const FakeEngine::Request&) { return raw; });
  return Ask(engine.socket_path());
}

void ExpectUnreachable(const Result<HttpAnswer>& answer, const std::string& text) {
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, "docker_unreachable");
  EXPECT_NE(answer.error().text.find("(from a test)"), std::string::npos) << answer.error().text;
  EXPECT_NE(answer.error().text.find(text), std::string::npos) << answer.error().text;
}

TEST(HttpClientTest, AnAnswerComesWithStatusVersionAndBody) {
  auto answer = AskRaw(FakeEngine::Answer(418, "tea"));
  ASSERT_TRUE(answer.ok()) << answer.error().text;
  EXPECT_EQ(answer->status, 418);
  EXPECT_EQ(answer->api_version, "1.41");
  EXPECT_EQ(answer->body, "tea");
}

TEST(HttpClientTest, APostCarriesItsBodyAndAGetNone) {
  FakeEngine engine([](const FakeEngine::Request&) { return FakeEngine::Answer(200, ""); });
  ASSERT_TRUE(Ask(engine.socket_path(), {"POST", "/p?a=b", "{\"k\":1}"}).ok());
  ASSERT_TRUE(Ask(engine.socket_path(), {"DELETE", "/d", {}}).ok());
  auto requests = engine.requests();
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].target, "/p?a=b");
  EXPECT_EQ(requests[0].body, "{\"k\":1}");
  EXPECT_EQ(requests[1].method, "DELETE");
}

TEST(HttpClientTest, NoSocketSaysToStartTheEngine) {
  ExpectUnreachable(Ask("/tmp/taskcell-no-such.sock"), "start Docker");
}

TEST(HttpClientTest, ASocketNobodyListensOnIsToldFromOneThatIsAbsent) {
  std::string path;
  {
    FakeEngine engine([](const FakeEngine::Request&) { return std::string(); });
    path = engine.socket_path() + ".dead";
    // A bound socket whose owner is gone.
    UniqueFd dead = sys::ListenPackets(path).value();
    dead.Reset();
    // SEQPACKET there, so the kernel says EPROTOTYPE for a live one and ECONNREFUSED for a dead
    // one.
    ExpectUnreachable(Ask(path), "nothing listens");
    ::unlink(path.c_str());
  }
}

TEST(HttpClientTest, AForbiddenSocketNamesThePermission) {
  FakeEngine engine([](const FakeEngine::Request&) { return FakeEngine::Answer(200, ""); });
  ASSERT_TRUE(Ask(engine.socket_path()).ok());
  ASSERT_EQ(::chmod(engine.socket_path().c_str(), 0), 0);
  constexpr uid_t kNobody = 65534;
  int status = test::InChild([&] {
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) return 2;
    auto answer = Ask(engine.socket_path());
    bool named = !answer.ok() && answer.error().kind == Kind::kDenied &&
                 answer.error().text.find("may not use the socket") != std::string::npos;
    return named ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(HttpClientTest, GarbageHalfAnswersAndSilenceAreNamed) {
  ExpectUnreachable(AskRaw("SSH-2.0-OpenSSH_9.2\r\n"), "not HTTP");
  ExpectUnreachable(AskRaw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"), "cut off");
  ExpectUnreachable(AskRaw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
                    "cut off");
  ExpectUnreachable(AskRaw(""), "cut off");
}

TEST(HttpClientTest, AnEngineThatHangsIsLeftAfterTheTimeLimit) {
  FakeEngine engine([](const FakeEngine::Request&) {
    ::usleep(300000);
    return FakeEngine::Answer(200, "late");
  });
  HttpRequest request{"GET", "/x", {}};
  request.timeout = std::chrono::milliseconds(100);
  ExpectUnreachable(Ask(engine.socket_path(), request), "within 100 ms");
  request.timeout = std::chrono::milliseconds(5000);
  EXPECT_TRUE(Ask(engine.socket_path(), request).ok());
}

TEST(HttpClientTest, ACallToAnEngineThatHangsIsGivenUpWhenSomebodyAsks) {
  for (bool by_closing : {false, true}) {
    sys::Pipe pipe = sys::MakePipe().value();
    std::promise<void> release;
    FakeEngine engine([&, released = release.get_future().share()](const FakeEngine::Request&) {
      if (by_closing) {
        pipe.write_end.Reset();
      } else {
        EXPECT_TRUE(sys::WriteAll(pipe.write_end.get(), "x").ok());
      }
      released.wait();
      return FakeEngine::Answer(200, "late");
    });
    HttpClient client(Endpoint{engine.socket_path(), "a test", {}});
    client.CancelOn(pipe.read_end.get());
    Result<HttpAnswer> answer = client.Call({"GET", "/x", {}});
    release.set_value();
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code, "stopped") << answer.error().text;
    // Whoever asked already is not made to wait for another one.
    EXPECT_EQ(client.Call({"GET", "/y", {}}).error().code, "stopped");
    EXPECT_EQ(engine.requests().size(), 1U);
    client.CancelOn(-1);
    EXPECT_EQ(client.Call({"GET", "/z", {}})->body, "late");
  }
}

TEST(HttpClientTest, ABodyOfTheBoundIsTakenAndOneByteMoreIsNot) {
  auto fits = AskRaw(FakeEngine::Answer(200, std::string(kMaxEngineAnswerBytes, 'x')));
  ASSERT_TRUE(fits.ok()) << fits.error().text;
  EXPECT_EQ(fits->body.size(), kMaxEngineAnswerBytes);
  ExpectUnreachable(AskRaw(FakeEngine::Answer(200, std::string(kMaxEngineAnswerBytes + 1, 'x'))),
                    "longer than 4194304 bytes");
}

TEST(HttpClientTest, HeadersAreBounded) {
  auto lines = [](std::size_t count) {
    std::string headers;
    for (std::size_t i = 0; i < count; ++i) headers += "X-A: " + std::string(1017, 'y') + "\r\n";
    return headers;  // 1024 bytes each
  };
  EXPECT_TRUE(AskRaw(FakeEngine::Answer(200, "", lines(60))).ok());
  ExpectUnreachable(AskRaw(FakeEngine::Answer(200, "", lines(64))), "65536");
}

TEST(HttpClientTest, ARedirectIsAnAnswerAndNotFollowed) {
  FakeEngine engine([](const FakeEngine::Request&) {
    return FakeEngine::Answer(302, "", "Location: http://127.0.0.1:1/\r\n");
  });
  auto answer = Ask(engine.socket_path());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 302);
  EXPECT_EQ(engine.requests().size(), 1U);
}

TEST(HttpClientTest, AMissingPodmanSocketHasItsOwnRemedy) {
  HttpClient client(Endpoint{"/nonexistent/podman/podman.sock", "a test", {}});
  auto answer = client.Call({"GET", "/_ping", {}});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, "docker_unreachable");
  EXPECT_NE(answer.error().text.find("podman.socket"), std::string::npos) << answer.error().text;
}

}  // namespace
}  // namespace taskcell::probe

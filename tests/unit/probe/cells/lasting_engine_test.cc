// What an engine is, asked no more often than it can have changed.
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "launcher/base/text.h"
#include "probe/cells/docker_engine.h"
#include "tests/support/fake_engine.h"

namespace taskcell::probe {
namespace {

using test::FakeEngine;
using Strings = std::vector<std::string>;

// An engine that keeps connections, and what it was asked since it was last looked.
class LastingEngine {
 public:
  std::string info = R"({"ServerVersion":"20.10","ID":"one"})";
  bool closes = false;  // the connection, after the next answer

  std::vector<std::string> Asked() {
    std::vector<std::string> asked;
    const std::vector<FakeEngine::Request> all = engine_.requests();
    for (; seen_ < all.size(); ++seen_)
      asked.push_back(all[seen_].target.substr(all[seen_].target.rfind('/')));
    for (std::string& each : asked) each = each.substr(0, each.find('?'));
    return asked;
  }
  Endpoint endpoint() const { return {engine_.socket_path(), "a test", {}}; }

 private:
  std::string Answer(const FakeEngine::Request& request) {
    std::string body = "[]";
    if (request.target == "/_ping") body = "OK";
    if (request.target.ends_with("/info")) body = info;
    return std::exchange(closes, false) ? FakeEngine::Answer(200, body)
                                        : FakeEngine::LastingAnswer(200, body);
  }

  std::size_t seen_ = 0;
  FakeEngine engine_{[this](const FakeEngine::Request& request) { return Answer(request); },
                     FakeEngine::Close::kWhenItSaysSo};
};

TEST(LastingEngineTest, WhatAnEngineIsIsAskedOnceForAsLongAsItsConnectionLives) {
  LastingEngine fake;
  auto client = std::make_shared<EngineClient>(fake.endpoint());
  EXPECT_TRUE(DockerEngine(client).CheckReachable().ok());
  EXPECT_EQ(fake.Asked(), (Strings{"/_ping", "/info", "/json"}));
  DockerEngine again(client);
  EXPECT_TRUE(again.CheckReachable().ok());
  EXPECT_EQ(fake.Asked(), Strings{"/json"}) << "whether it is alive is asked each time";
  EXPECT_EQ(again.Identity(), Text(fake.endpoint().socket_path, " one"));
  EXPECT_TRUE(DockerEngine(fake.endpoint()).CheckReachable().ok());
  EXPECT_EQ(fake.Asked(), (Strings{"/_ping", "/info", "/json"})) << "control: another client";
}

TEST(LastingEngineTest, AnEngineThatWasRestartedIsAskedAgainWhatItIs) {
  LastingEngine fake;
  auto client = std::make_shared<EngineClient>(fake.endpoint());
  DockerEngine before(client);
  EXPECT_TRUE(before.CheckReachable().ok());
  EXPECT_FALSE(before.NeedsLimitsProbe());
  fake.closes = true;
  EXPECT_TRUE(DockerEngine(client).CheckReachable().ok());
  fake.info = R"({"ID":"two","Rootless":true})";
  (void)fake.Asked();
  DockerEngine after(client);
  EXPECT_TRUE(after.CheckReachable().ok());
  EXPECT_EQ(fake.Asked(), (Strings{"/json", "/_ping", "/info", "/json"}));
  EXPECT_TRUE(after.NeedsLimitsProbe());
  EXPECT_EQ(after.Identity(), Text(fake.endpoint().socket_path, " two"));
}

TEST(LastingEngineTest, AnEngineThatTookTheSocketsPlaceIsAskedWhatItIs) {
  LastingEngine first;
  LastingEngine second;
  second.info = R"({"ID":"two"})";
  const std::string path = Text("/tmp/taskcell-two-engines-", ::getpid());
  auto lead_to = [&](const LastingEngine& to) {
    ::unlink(path.c_str());
    ASSERT_EQ(::symlink(to.endpoint().socket_path.c_str(), path.c_str()), 0);
  };
  lead_to(first);
  auto client = std::make_shared<EngineClient>(Endpoint{path, "a test", {}});
  EXPECT_TRUE(DockerEngine(client).CheckReachable().ok());
  lead_to(second);
  auto fresh = std::make_shared<EngineClient>(Endpoint{path, "a test", {}});
  EXPECT_TRUE(DockerEngine(fresh).CheckReachable().ok());
  DockerEngine after(client);
  EXPECT_TRUE(after.CheckReachable().ok());
  EXPECT_EQ(after.Identity(), path + " two");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace taskcell::probe

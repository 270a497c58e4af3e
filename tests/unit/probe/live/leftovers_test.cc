#include "probe/live/leftovers.h"

#include <gtest/gtest.h>

#include "tests/support/fake_engine.h"

namespace taskcell::live {
namespace {

using test::FakeEngine;

TEST(LeftoversTest, OnlyWhatIsPastItsTimeIsRemoved) {
  FakeEngine engine([](const FakeEngine::Request& request) {
    if (request.target == "/_ping") return FakeEngine::Answer(200, "OK");
    if (request.method == "DELETE") return FakeEngine::Answer(204, "");
    if (request.target.find("/containers/json") != std::string::npos) {
      return FakeEngine::Answer(200, R"([
        {"Id":"old","Labels":{"com.duduclaw.task-sandbox.deadline":"999"}},
        {"Id":"young","Labels":{"com.duduclaw.task-sandbox.deadline":"1000"}},
        {"Id":"unknown","Labels":{"com.duduclaw.task-sandbox.deadline":"x"}}])");
    }
    return FakeEngine::Answer(200, R"([{"Id":"aged","Created":699},{"Id":"fresh","Created":700}])");
  });
  probe::EngineClient client(probe::Endpoint{engine.socket_path(), "a test", {}});
  RemoveLeftovers(client, 1000);
  std::string removed;
  for (const FakeEngine::Request& request : engine.requests())
    if (request.method == "DELETE") removed += request.target + " ";
  EXPECT_EQ(removed, "/v1.41/containers/old?force=1&v=1 /v1.41/images/aged ");
}

TEST(LeftoversTest, OnlyOfProbesIsAnythingListed) {
  FakeEngine engine([](const FakeEngine::Request&) { return FakeEngine::Answer(200, "[]"); });
  probe::EngineClient client(probe::Endpoint{engine.socket_path(), "a test", {}});
  RemoveLeftovers(client, 1000);
  auto requests = engine.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_NE(requests[1].target.find(kProbeHomeLabel), std::string::npos) << requests[1].target;
  EXPECT_NE(requests[2].target.find(kProbeImageLabel), std::string::npos) << requests[2].target;
}

}  // namespace
}  // namespace taskcell::live

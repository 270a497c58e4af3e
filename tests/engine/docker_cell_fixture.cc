#include "tests/engine/docker_cell_fixture.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/engine_proxy.h"

namespace taskcell::test {

using Json = nlohmann::json;

void DockerCellTest::SetUp() {
  DockerTest::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  init_ = Program("taskcell-init");
  TASKCELL_REQUIRE(::access(init_.c_str(), X_OK) == 0,
                   "needs taskcell-init where the test user may read it (" + init_ + ")");
  agent_ = sandbox_ + "/agent";
  ASSERT_EQ(::mkdir(agent_.c_str(), 0755), 0);
  std::ofstream(agent_ + "/SOUL.md") << "a soul\n";
  ASSERT_EQ(::chmod((agent_ + "/SOUL.md").c_str(), 0444), 0);
}

void DockerCellTest::TearDown() {
  if (!agent_.empty()) std::filesystem::remove_all(agent_);
  DockerTest::TearDown();
}

cell::CellPlan DockerCellTest::AgentPlan() {
  cell::CellPlan plan = Plan();
  pin_ = UniqueFd(::open(agent_.c_str(), O_PATH | O_CLOEXEC));
  struct stat status;
  EXPECT_EQ(::fstat(pin_.get(), &status), 0);
  plan.mounts.push_back(
      {agent_, "/agent", cell::EntryKind::kDirectory, status.st_dev, status.st_ino, false});
  return plan;
}

void DockerCellTest::MakeJobImage(Json config, Json files) {
  files["/bin/actor"] = {{"from", actor_}};
  MakeImage("", std::move(files), std::move(config));
}

std::unique_ptr<FakeEngine> DockerCellTest::ProxyThatChanges(void (*change)(Json& body)) {
  return std::make_unique<FakeEngine>([this, change](const FakeEngine::Request& request) {
    FakeEngine::Request forwarded = request;
    if (request.target.find("/containers/create") != std::string::npos) {
      const Json before = Json::parse(request.body);
      Json body = before;
      change(body);
      request_changed_ = body != before;
      forwarded.body = body.dump();
    }
    return ForwardToEngine(socket_, forwarded);
  });
}

}  // namespace taskcell::test

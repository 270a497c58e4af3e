#pragma once

#include "tests/engine/docker_fixture.h"
#include "tests/support/cell_session.h"

namespace taskcell::test {

// A DockerTest with the real taskcell-init and an agent directory of one file, SOUL.md.
class DockerCellTest : public DockerTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Plan() with the agent directory at /agent.
  cell::CellPlan AgentPlan();

  // An image with the cell actor at /bin/actor, and what the test adds.
  void MakeJobImage(nlohmann::json config = nlohmann::json::object(),
                    nlohmann::json files = nlohmann::json::object());

  // A proxy in front of the real engine that lets `change` edit the body of the create request; it
  // must edit something.
  std::unique_ptr<FakeEngine> ProxyThatChanges(void (*change)(nlohmann::json& body));

  std::string agent_;
  UniqueFd pin_;
  bool request_changed_ = false;
};

}  // namespace taskcell::test

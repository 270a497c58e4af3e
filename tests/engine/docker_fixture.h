#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launcher/cell/cell_plan.h"
#include "probe/cells/docker_engine.h"
#include "tests/support/fake_engine.h"
#include "tests/support/fixture.h"

namespace taskcell::test {

// A test with a real Docker engine, run as the unprivileged test user. After it no run directory
// may be left.
class DockerTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Makes an image of these files (and /behaviour, where not empty) with this configuration.
  void MakeImage(const std::string& behaviour, nlohmann::json files = nlohmann::json::object(),
                 nlohmann::json config = nlohmann::json::object());

  // A plan for the image with 64 MiB, 32 processes and half a core.
  cell::CellPlan Plan() const;
  probe::CellPlaces Places() const;

  // An engine on the real socket, or on another one.
  probe::DockerEngine& Engine();
  probe::DockerEngine& EngineAt(const std::string& socket_path);

  // Makes a cell of Plan() with the engine used last.
  Result<std::unique_ptr<probe::RunningCell>> Make();
  Result<std::unique_ptr<probe::RunningCell>> Make(cell::CellPlan plan);

  // The containers that carry this test's home label now.
  std::size_t ContainersLeft();
  // That there are none: the engine's list may still name one that it no longer knows.
  bool NoContainerIsLeft();

  std::string socket_;
  std::string actor_;    // path of the cell actor
  std::string init_;     // what is brought in as init; the actor by default
  std::string sandbox_;  // 0700
  std::string run_directory_;
  std::string run_id_;
  std::string home_label_;
  std::string image_;                // the one made last
  std::vector<std::string> images_;  // all of them
  std::unique_ptr<probe::DockerEngine> engine_;
  std::vector<std::string> cgroups_seen_;  // lines of /proc/<pid>/cgroup
  std::vector<pid_t> pids_seen_;
};

}  // namespace taskcell::test

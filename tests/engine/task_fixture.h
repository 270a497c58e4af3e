#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/gateway/egress/provider_process.h"
#include "tests/support/fixture.h"

namespace taskcell::test {

// A home with one agent, "a1", that runs our own loop on the engine kTaskEngine names, and a
// provider on loopback that drives it. After each test no run directory may be left.
class TaskFixture : public testing::Test {
 protected:
  using Json = nlohmann::json;
  static constexpr std::string_view kKey = "sk-the-one-real-credential-0123456789";

  void SetUp() override;
  void TearDown() override;

  // False where a test has one already (see TASKCELL_ENTER_OWN_NETWORK).
  virtual bool needs_own_network() const { return true; }

  // Writes a file of the home.
  void Put(const std::string& name, std::string_view content) const;
  // Writes the agent's agent.toml; `more` is appended.
  void Agent(uint64_t timeout_ms, std::string_view more = "") const;
  std::string At(std::string_view name) const;  // outside the home
  // Path of a file of the agent's directory.
  std::string AgentFile(std::string_view name) const;

  // A provider that follows `scenario` (see tests/support/provider.py).
  gateway::ProviderProcess MakeProvider(const Json& scenario) const;

  // Gives all of the home to the test user.
  void GiveHomeToUser() const;
  // Runs the client as the test user, with `before` in front of its command line.
  Outcome RunClient(const std::string& url, std::vector<std::string> options,
                    std::vector<std::string> before = {}, std::string_view key = kKey) const;

  // `taskcell shell` as OnTerminal starts it, and what its child does before, to be the test user.
  std::vector<std::string> ShellCommand() const;
  std::function<void()> BecomeUser() const;

  std::optional<User> user_;
  std::string path_ = "/tmp/taskcell-task-XXXXXX";
  std::string socket_;
  std::string image_;
};

}  // namespace taskcell::test

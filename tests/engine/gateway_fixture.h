#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/engine/task_fixture.h"
#include "tests/support/background.h"
#include "tests/support/fake_engine.h"

namespace taskcell::test {

// A home like TaskFixture's, served by a real taskcell-gateway that runs as the test user.
class GatewayFixture : public TaskFixture {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string Home() const { return home_.empty() ? path_ + "/home" : home_; }
  // The test user, with the environment that names the credential, the provider and the engine.
  RunOptions AsUser(const std::string& provider_url = "") const;
  std::vector<std::string> GatewayCommand() const;

  // Starts a gateway whose provider is at `url`, and waits until it serves.
  void StartGateway(const std::string& url, const std::vector<std::string>& options = {},
                    const std::vector<std::string>& environment = {});
  // Whether somebody takes connections at the home's socket.
  bool IsServed() const;
  // Waits until somebody answers there, or `has_ended`.
  void AwaitService(const std::function<bool()>& has_ended) const;
  // SIGTERM; its exit status, nullopt when it does not end within a minute.
  std::optional<int> StopGateway();
  void KillGateway();

  // The client with these words, --home added.
  Outcome Client(std::vector<std::string> words) const;
  Json ClientJson(std::vector<std::string> words) const;
  // A task's id; empty where it was not taken in.
  std::string Submit(const std::string& prompt, const std::string& agent = "a1") const;
  // All tasks, the newest first.
  Json Tasks() const { return ClientJson({"ps", "--all"}); }
  Json Show(const std::string& id) const { return ClientJson({"show", id}); }
  std::string StateOf(const std::string& id) const;
  // Whether no task waits or runs.
  bool IsIdle() const;
  // curl as the test user, asking the gateway's API.
  Outcome Curl(const std::string& target, std::vector<std::string> options = {}) const;
  // What it answers.
  Json Api(const std::string& target, std::vector<std::string> options = {}) const;

  // How many conversations with that prompt were begun at the provider: an AI that runs twice
  // begins two.
  static int Conversations(const gateway::ProviderProcess& provider, const std::string& prompt);

  // Lets the test user reach an engine of the test's own.
  static void Admit(const FakeEngine& engine);

  // What a sweep as in 12 minutes removes.
  Json SweepLater() const;
  // Nothing but what every home keeps: no run directory, no prompt of a task that ended, every line
  // of the audit log, every receipt and every export whole.
  void ExpectTidy() const;
  // How many exports there are, each with all that its manifest names.
  std::size_t Exports() const;

  std::string home_;  // empty: where TaskFixture makes it
  std::unique_ptr<Background> gateway_;
};

}  // namespace taskcell::test

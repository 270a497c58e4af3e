#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "tests/integration/gateway/egress/provider_process.h"
#include "tests/support/fixture.h"

namespace taskcell::test {

// How an agent and its account are set up.
struct RealAgent {
  std::string runtime;           // [runtime] provider
  std::string model;             // [model] preferred
  std::string account_provider;  // [[accounts]] provider
  std::string key_prefix;        // what the random credential begins with
  bool oauth = false;            // a stored token instead of an API key
  std::string ca_file = {};      // [taskcell] ca_file; empty: none
};

// One home with one agent, "a1", for `taskcell run` on the engine kTaskEngine names, in the root or
// image of make_cli_image.sh. After each test no run directory may be left.
class RealTaskFixture : public testing::Test {
 public:
  static constexpr std::string_view kState = "/var/lib/taskcell-test";
  static constexpr std::string_view kImage = "taskcell-test/cli:1";
  static constexpr std::string_view kPromptMark = "prompt-mark-5f1c9e";

  // `prefix` and 32 hex digits nobody can guess.
  static std::string Random(std::string_view prefix);

 protected:
  void SetUp() override;
  void TearDown() override;

  // Writes the home's configuration and the agent; key() is new.
  void MakeHome(const RealAgent& agent);
  // Writes a file of the home; returns its path.
  std::string Put(const std::string& name, std::string_view content) const;
  // `taskcell run a1 PROMPT --json` as the test user.
  Outcome RunTask(const gateway::ProviderProcess& provider) const;

  const User& user() const { return *user_; }
  const std::string& path() const { return path_; }  // outside the home
  const std::string& key() const { return key_; }

 private:
  std::optional<User> user_;
  std::string path_ = "/tmp/taskcell-real-XXXXXX";
  std::string socket_;
  std::string key_;
};

}  // namespace taskcell::test

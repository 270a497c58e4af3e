#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tests/engine/small_root_fixture.h"

namespace taskcell::test {

// A home whose agent has ways_out.sh, in cells that have a shell.
class WaysOutTest : public SmallRootFixture {
 protected:
  static constexpr std::string_view kThrough = "through";
  using Outcomes = std::map<std::string, std::string>;

  void SetUp() override;

  static Outcomes Parse(const std::string& text);
  // The script as a tool call of a task.
  Outcomes TryInCell(const gateway::ProviderProcess& provider, Json* answer);
  static Json Scenario();
  // Each way comes to what it may come to in a cell, and to nothing else.
  static void Expect(const Outcomes& outcomes);
};

}  // namespace taskcell::test

#pragma once

#include <string>
#include <string_view>

#include "tests/engine/gateway_fixture.h"

namespace taskcell::test {

// A gateway that is killed, and the one started after it. Agent "closed" has a closed network.
class GatewayKillTest : public GatewayFixture {
 protected:
  static constexpr std::string_view kPrompt = "the-one-question";
  static Json Scenario();

  void SetUp() override;

  // After a gateway was killed: another one finds every task that was taken in, ends or runs it,
  // and works. `id` is the killed one's task, empty where nobody was told of it; `expected` its
  // state.
  void ExpectRecovery(const gateway::ProviderProcess& provider, const std::string& id,
                      const std::string& expected);
  void ExpectAnswer(const std::string& id, const std::string& state, int begun);
  // A task after it runs as if nothing had been, and then nothing is left.
  void ExpectWorks(const gateway::ProviderProcess& provider);
};

}  // namespace taskcell::test

#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "tests/engine/gateway_fixture.h"

namespace taskcell::test {

// A call of a gateway at which it is killed.
struct KillPoint {
  const char* name;
  long call;
  const char* path;        // part of the call's path
  int nth;                 // of those calls, counted from
  long from;               // this call on; -1: from what is asked of the gateway on
  const char* state = "";  // of the task afterwards; "": there is none; "?": done or interrupted
  const char* agent = "a1";
  std::size_t exports = 0;  // how many there are afterwards
};
inline void PrintTo(const KillPoint& point, std::ostream* out) { *out << point.name; }

// A gateway that is killed, and the one started after it. Agent "closed" has a closed network, what
// agent "exporting" writes is exported.
class GatewayKillTest : public GatewayFixture {
 protected:
  static constexpr std::string_view kPrompt = "the-one-question";
  static Json Scenario();

  void SetUp() override;

  // Starts a gateway with its provider at `url`, lets it be asked for something, and kills it at
  // the point.
  void KillAt(const KillPoint& point, const std::string& url, const std::function<void()>& ask);

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

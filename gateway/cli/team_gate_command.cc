#include "gateway/cli/team_gate_command.h"

#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/config/agent_config.h"
#include "gateway/config/team_gate.h"
#include "gateway/task/answer.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

Result<TeamDecision> Decide(const std::string& home_option, const std::string& agent_name,
                            const std::string& mode_name) {
  const TeamGateMode mode = TRY(ParseTeamGateMode(mode_name));
  Home home = TRY(OpenChosenHome(home_option, ProcessEnvironment()));
  Agent agent = TRY(FindAgent(home, agent_name));
  return DecideTeam(agent.config.sandbox_enabled, mode);
}

}  // namespace

int TeamGateCommand(const std::string& home_option, const std::string& agent,
                    const std::string& mode, bool json) {
  constexpr int kFailed = 1;
  constexpr int kUsage = 2;
  Result<TeamDecision> decision = Decide(home_option, agent, mode);
  if (!decision.ok()) {
    Tell(Printable(decision.error().text));
    return decision.error().code.empty() ? kUsage : ExitStatus(decision.error().code);
  }
  std::string text = Text(decision->decision, " ", decision->reason);
  if (json) {
    JsonText object;
    object.Open('{').Key("decision").String(decision->decision);
    object.Key("reason").String(decision->reason).Close('}');
    text = object.text();
  }
  return PrintOutput(text + "\n") ? 0 : kFailed;
}

}  // namespace taskcell::gateway

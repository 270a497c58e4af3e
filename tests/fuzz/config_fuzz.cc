// config.toml and agent.toml, as anybody might have edited them.
#include "gateway/config/account_wish.h"
#include "gateway/config/accounts.h"
#include "gateway/config/agent_config.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/config/toml_document.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  using namespace taskcell;
  Result<gateway::ConfigValue> document =
      gateway::ParseToml(fuzz::TextOf(data, size), "config.toml");
  if (!document.ok()) {
    fuzz::Require(document.error().kind == Kind::kConfig);
    return 0;
  }
  Result<gateway::SandboxSettings> settings = gateway::ReadSandboxSettings(document.value());
  if (settings.ok()) {
    fuzz::Require(settings->pids > 0 && settings->memory_bytes > 0 && settings->cpu_millis > 0);
    fuzz::Require(settings->tmp_bytes + settings->workspace_bytes <= settings->memory_bytes);
  } else {
    fuzz::Require(settings.error().code == "invalid_config");
  }
  (void)gateway::ReadEscapeHatches(document.value());  // only that it ends
  (void)gateway::FindMisplacedKeys(document.value());  // only that it ends
  Result<gateway::AgentConfig> agent = gateway::ReadAgentConfig(document.value());
  fuzz::Require(agent.ok() || agent.error().code == "invalid_config");
  Result<std::vector<gateway::Account>> accounts =
      gateway::LoadAccounts(document.value(), -1, gateway::Environment{});
  if (accounts.ok()) {
    Result<std::vector<gateway::Account>> fitting =
        gateway::FittingAccounts(accounts.value(), {"claude", "anthropic", true, {}});
    fuzz::Require(fitting.ok() ? fitting->at(0).unavailable.empty()
                               : fitting.error().code == "no_account");
  }
  return 0;
}

// Every refusal of the guide, each with its code, event, remedy and exit status; and of two faults
// at once the one that is looked for first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>

#include "tests/support/fixture.h"
#include "tests/support/syscall_faults.h"
#include "tests/unit/gateway/task/host_fixture.h"

namespace taskcell::gateway {
namespace {

using testing::HasSubstr;

// What one fault changes; together they are one home and one engine.
struct World {
  std::string config;
  std::string provider = "claude";
  std::string model = "claude-sonnet-4-5";
  std::string timeout = "20000";
  bool network = true;
  bool root = false;
  bool account = true;
  bool rootless = false;
  bool no_pidfd = false;
  std::map<std::string, std::string_view> faults;
};

struct Fault {
  std::string_view name;
  std::string_view code;
  std::string_view remedy;  // a part of the message
  std::function<void(World&)> make;
};

// In the order in which they are looked for.
const std::vector<Fault>& Faults() {
  static const std::vector<Fault> faults = {
      {"settings", "invalid_config", "pids must be a positive integer",
       [](World& world) { world.config = "[container.sandbox]\npids = -1\n"; }},
      {"runtime", "unsupported_runtime",
       "(supported: claude, codex, antigravity, grok, openai_compat)",
       [](World& world) { world.provider = "kiro"; }},
      {"network", "network_disabled", "set network_access = true",
       [](World& world) { world.network = false; }},
      {"root", "root_user", "runs as root (uid 0)", [](World& world) { world.root = true; }},
      {"platform", "unsupported_platform", "pidfd_open",
       [](World& world) { world.no_pidfd = true; }},
      {"model", "invalid_config", "set [model] preferred", [](World& world) { world.model = " "; }},
      {"timeout", "invalid_config", "timeout_ms of agent.toml must not be 0",
       [](World& world) { world.timeout = "0"; }},
      {"engine", "docker_unreachable", "",
       [](World& world) { world.faults["reach"] = "docker_unreachable"; }},
      {"image", "image_missing", "", [](World& world) { world.faults["image"] = "image_missing"; }},
      {"limits", "resource_limits_unenforced", "",
       [](World& world) {
         world.rootless = true;
         world.faults["make"] = "resource_limits_unenforced";
       }},
      {"account", "no_account", "an Anthropic API key",
       [](World& world) { world.account = false; }},
  };
  return faults;
}

class RefusalsTest : public HostTaskTest {
 protected:
  TaskAnswer RunIn(const World& world) {
    Put("config.toml", world.config);
    Put("agents/a1/agent.toml",
        Text("[agent]\nname = \"a1\"\n[runtime]\nprovider = \"", world.provider,
             "\"\n[model]\npreferred = \"", world.model,
             "\"\n[container]\nsandbox_enabled = true\nnetwork_access = ",
             world.network ? "true" : "false", "\ntimeout_ms = ", world.timeout, "\n"));
    surroundings_.effective_uid = world.root ? 0 : 1500;
    surroundings_.environment.erase("ANTHROPIC_API_KEY");
    if (world.account) surroundings_.environment["ANTHROPIC_API_KEY"] = "sk-ant-api03-test";
    state_.rootless = world.rootless;
    state_.faults = world.faults;
    state_.calls.clear();
    return Run();
  }

  // In a child, where the kernel lacks what the world says it lacks: prints the code's name for the
  // parent by its place among the faults, 100 for none.
  int PlaceOf(const World& world) {
    return test::InChild([&] {
      if (world.no_pidfd && !test::InstallFaults({{SYS_pidfd_open, ENOSYS}})) return 90;
      const TaskAnswer answer = RunIn(world);
      for (std::size_t at = 0; at < Faults().size(); ++at) {
        const Fault& fault = Faults()[at];
        if (answer.code == fault.code && answer.message.find(fault.remedy) != std::string::npos &&
            AuditLog().find(Text("\"reason\":\"", fault.code, "\"")) != std::string::npos &&
            ExitStatus(answer.code) == 3 && !answer.reply.has_value())
          return static_cast<int>(at);
      }
      return 100;
    });
  }
};

TEST_F(RefusalsTest, EachHasItsCodeRemedyEventAndExitStatus) {
  for (std::size_t at = 0; at < Faults().size(); ++at) {
    World world;
    Faults()[at].make(world);
    std::filesystem::remove(path_ + "/security_audit.jsonl");
    EXPECT_EQ(PlaceOf(world), static_cast<int>(at)) << Faults()[at].name;
    EXPECT_FALSE(std::filesystem::exists(path_ + "/sandbox")) << Faults()[at].name;
  }
}

TEST_F(RefusalsTest, OfTwoAtOnceTheEarlierIsTold) {
  const std::size_t count = Faults().size();
  for (std::size_t first = 0; first < count; ++first) {
    for (std::size_t second = first + 1; second < count; ++second) {
      World world;
      Faults()[first].make(world);
      Faults()[second].make(world);
      std::filesystem::remove(path_ + "/security_audit.jsonl");
      EXPECT_EQ(PlaceOf(world), static_cast<int>(first))
          << Faults()[first].name << " and " << Faults()[second].name;
    }
  }
}

TEST_F(RefusalsTest, NoEngineIsAskedBeforeTheConfigurationIsRight) {
  for (std::size_t at = 0; Faults()[at].name != "engine"; ++at) {
    World world;
    if (Faults()[at].name == "platform") continue;  // tried in a child only
    Faults()[at].make(world);
    (void)RunIn(world);
    EXPECT_TRUE(state_.calls.empty()) << Faults()[at].name;
  }
}

// Beside the others it has no place in their order: one engine cannot be both.
TEST_F(RefusalsTest, AnEngineThatIsTooOldHasItsCodeRemedyEventAndExitStatus) {
  World world;
  world.faults["reach"] = "engine_unsupported";
  state_.fault_text = "the engine serves API 1.12 to 1.30; update the engine";
  const TaskAnswer answer = RunIn(world);
  EXPECT_EQ(answer.code, "engine_unsupported");
  EXPECT_EQ(answer.message,
            "Task sandbox unavailable (engine_unsupported): the engine answers, but cannot be "
            "used; its API is too old: update the engine");
  EXPECT_THAT(AuditLog(), HasSubstr("\"reason\":\"engine_unsupported\""));
  EXPECT_EQ(ExitStatus(answer.code), 3);
  EXPECT_FALSE(answer.reply.has_value());
  EXPECT_FALSE(std::filesystem::exists(path_ + "/sandbox"));
}

// Both hatch values are in the event, and nothing of the engine's words.
TEST_F(RefusalsTest, TheReplyAndTheEventQuoteNoEngine) {
  World world;
  world.faults["reach"] = "docker_unreachable";
  (void)RunIn(world);
  EXPECT_EQ(AuditLog().find("told to fail"), std::string::npos);
}

}  // namespace
}  // namespace taskcell::gateway

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "gateway/cli/doctor.h"
#include "gateway/config/accounts.h"
#include "gateway/ledger/ledger.h"
#include "gateway/task/admission.h"
#include "launcher/base/text.h"
#include "tests/unit/gateway/task/run_task_fixture.h"

namespace taskcell::gateway {
namespace {

class DoctorTest : public RunTaskTest {
 protected:
  DoctorReport Look() {
    Home home = OpenHome(path_).value();
    return Diagnose(home, surroundings_);
  }
  // "state: text" of the row; "" where there is none.
  static std::string Row(const DoctorReport& report, std::string_view id) {
    constexpr const char* kStates[] = {"ok", "note", "warn", "fail"};
    for (const DoctorRow& row : report.rows)
      if (row.id == id) return Text(kStates[static_cast<int>(row.state)], ": ", row.text);
    return "";
  }
};

TEST_F(DoctorTest, AHomeWhoseTasksWouldRunIsHealthyAndLeftAsItWas) {
  Put("config.toml", "");
  Put("agents/a1/wiki/page.md", "x");
  std::filesystem::create_symlink("/etc/passwd", path_ + "/agents/a1/CLAUDE.md");
  const std::set<std::string> before = Tree();
  const DoctorReport report = Look();
  EXPECT_FALSE(report.refused);
  EXPECT_EQ(Row(report, "configuration"), "ok: valid");
  EXPECT_EQ(Row(report, "engine"), "ok: fake");
  EXPECT_NE(Row(report, "image").find("is on this machine"), std::string::npos);
  EXPECT_NE(Row(report, "limits").find("rootful"), std::string::npos);
  EXPECT_EQ(Row(report, "differences"), "note: none");
  EXPECT_EQ(Row(report, "agents"), "note: the sandbox is on for a1");
  EXPECT_EQ(Row(report, "network"), "");
  EXPECT_EQ(Row(report, "refused tasks"), "note: fail; they are not run without isolation");
  EXPECT_EQ(Row(report, "account env"), "ok: for anthropic");
  const std::string agent = Row(report, "agent a1");
  EXPECT_TRUE(agent.starts_with("ok: claude, model claude-sonnet-4-5, account env\n")) << agent;
  EXPECT_NE(agent.find("egress: https://api.anthropic.com only"), std::string::npos) << agent;
  EXPECT_NE(agent.find("sees: SOUL.md wiki\nskipped: CLAUDE.md (symlink)"), std::string::npos)
      << agent;
  const std::string host_paths = Row(report, "host paths");
  for (std::string_view claim : {"a1: channel replies, scheduled tasks and reminders",
                                 "always run Solo", "new mail does not wake them"})
    EXPECT_NE(host_paths.find(claim), std::string::npos) << host_paths;
  EXPECT_EQ(Tree(), before);
  EXPECT_EQ(AuditLog(), "") << "looking is no refusal";
  EXPECT_FALSE(state_.plan.has_value()) << "no cell was made";
}

TEST_F(DoctorTest, ItExitsWithOneExactlyWhereAnAgentWithTheSandboxOnWouldBeRefused) {
  Put("config.toml", "");
  Agent("a1", "", "false");
  DoctorReport report = Look();
  EXPECT_TRUE(report.refused);
  EXPECT_TRUE(Row(report, "agent a1").starts_with("fail: would be refused now: network_disabled: "))
      << Row(report, "agent a1");
  EXPECT_NE(Row(report, "agent a1").find("\nsees: SOUL.md"), std::string::npos)
      << "what is wrong with its directory is told all the same";
  EXPECT_TRUE(Row(report, "network").starts_with("warn: a1: [container] network_access = false"))
      << Row(report, "network");
  Put("agents/a1/agent.toml",
      "[agent]\nname = \"a1\"\n[container]\nsandbox_enabled = false\nnetwork_access = false\n");
  report = Look();
  EXPECT_FALSE(report.refused) << "its sandbox is off";
  EXPECT_EQ(Row(report, "agent a1"), "");
  EXPECT_EQ(Row(report, "host paths"), "") << "said only where it concerns somebody";
  EXPECT_EQ(Row(report, "agents"), "note: none has [container] sandbox_enabled = true");
}

// Its tasks are refused, since nobody knows whether its sandbox is on.
TEST_F(DoctorTest, AnAgentWhoseFileMakesNoSenseWouldBeRefused) {
  Put("config.toml", "");
  Put("agents/a2/agent.toml", "[agent]\nname = \"a2\"\n[container]\nsandbox_enabled = \"true\"\n");
  const DoctorReport report = Look();
  EXPECT_TRUE(report.refused);
  EXPECT_TRUE(Row(report, "agent a2").starts_with("fail: would be refused now: invalid_config: "))
      << Row(report, "agent a2");
  EXPECT_TRUE(Row(report, "agent a1").starts_with("ok: ")) << "another's file stops nobody";
  EXPECT_EQ(Run("x", "a2").code, "invalid_config") << "control: it is as doctor says";
}

TEST_F(DoctorTest, ABudgetThatCannotBeEnforcedIsNamedWithWhatIsMissing) {
  const std::string account = "[[accounts]]\nid = \"work\"\napi_key = \"secret://env/KEY\"\n";
  surroundings_.environment = {{"KEY", "sk-test"}};
  Put("config.toml", account);
  DoctorReport report = Look();
  EXPECT_EQ(Row(report, "budget"),
            "warn: monthly_budget_cents (5000) of account `work` cannot be enforced: "
            "[taskcell.prices] has no price for model claude-sonnet-4-5");
  EXPECT_EQ(Row(report, "account work"), "ok: for anthropic, 0 of 5000 cents spent this month");
  EXPECT_FALSE(report.refused);
  surroundings_.environment["SPARE"] = "sk-spare";
  Put("config.toml", Text(account, "[[accounts]]\nid = \"spare\"\nmonthly_budget_cents = 7\n",
                          "api_key = \"secret://env/SPARE\"\n"));
  report = Look();
  std::vector<std::string> named;
  for (const DoctorRow& row : report.rows)
    if (row.id == "budget") named.push_back(row.text.substr(0, row.text.find(" cannot")));
  EXPECT_EQ(named, (std::vector<std::string>{"monthly_budget_cents (5000) of account `work`",
                                             "monthly_budget_cents (7) of account `spare`"}));
  Put("config.toml",
      Text("[taskcell.prices.claude-sonnet-4-5]\ninput = 300\noutput = 1500\n", account));
  EXPECT_EQ(Row(Look(), "budget"), "");
}

TEST_F(DoctorTest, AnOpenHatchIsWarnedOf) {
  Put("config.toml", "[container.sandbox]\nwhen_unavailable = \"run_unsandboxed\"\n");
  EXPECT_EQ(Row(Look(), "refused tasks"),
            "warn: run on the host, without isolation: when_unavailable = \"run_unsandboxed\"");
}

TEST_F(DoctorTest, ScriptsHaveARowAndTheirHatchToo) {
  Put("config.toml", "");
  DoctorReport report = Look();
  EXPECT_EQ(Row(report, "scripts"), "ok: run in cells of their own, without a network");
  EXPECT_EQ(Row(report, "refused scripts"), "note: are not run");
  Put("config.toml", "[container.sandbox]\nscript_when_unavailable = \"run_unsandboxed\"\n");
  state_.fail_at = "image";
  state_.code = "image_missing";
  report = Look();
  EXPECT_EQ(Row(report, "scripts").rfind("warn: would be refused now: image_missing: ", 0), 0U)
      << Row(report, "scripts");
  EXPECT_EQ(Row(report, "refused scripts"),
            "warn: run on the host, without isolation: script_when_unavailable = "
            "\"run_unsandboxed\"");
  EXPECT_EQ(Row(report, "refused tasks"), "note: fail; they are not run without isolation");
}

TEST_F(DoctorTest, OfNativeCellsItSaysWhichLanguagesTheyHave) {
  state_.kind = cell::Engine::kNative;
  surroundings_.prove_limits = [](const Home&, probe::CellEngine&, const SandboxSettings&) {
    return Ok();
  };
  Put("root/usr/bin/bash", "#!");
  ASSERT_EQ(::chmod((path_ + "/root/usr/bin/bash").c_str(), 0755), 0);
  Put("config.toml", Text("[taskcell]\nengine = \"native\"\nroot = \"", path_, "/root\"\n"));
  EXPECT_EQ(Row(Look(), "scripts"),
            "ok: run in cells of their own, without a network: bash\nwithout an interpreter: "
            "python, javascript");
}

TEST_F(DoctorTest, EachEngineSaysWhatIsDifferentWithIt) {
  Put("config.toml", "");
  for (const auto& [kind, part] : std::vector<std::pair<cell::Engine, std::string>>{
           {cell::Engine::kDocker, "note: none"},
           {cell::Engine::kPodman, "/workspace has mode 1777"},
           {cell::Engine::kNative, "no image is used"}}) {
    state_.kind = kind;
    surroundings_.prove_limits = [](const Home&, probe::CellEngine&, const SandboxSettings&) {
      return Ok();
    };
    const DoctorReport report = Look();
    EXPECT_NE(Row(report, "differences").find(part), std::string::npos)
        << Row(report, "differences");
    EXPECT_EQ(Row(report, "image").empty(), kind == cell::Engine::kNative);
    EXPECT_TRUE(Row(report, "limits").starts_with("ok: ")) << Row(report, "limits");
  }
}

TEST_F(DoctorTest, TheWayToTheProviderNamesTheOperatorsProxy) {
  Put("config.toml", "[taskcell]\nupstream_proxy = \"http://proxy.example:3128\"\n");
  const std::string agent = Row(Look(), "agent a1");
  EXPECT_NE(agent.find("egress: https://api.anthropic.com only, through the broker and "
                       "http://proxy.example:3128\n"),
            std::string::npos)
      << agent;
}

TEST_F(DoctorTest, TunnelsAreNamedAndACredentialThatIsInsideIsSaidToBe) {
  Put("config.toml", "");
  Agent("a1", "[taskcell]\nallow_hosts = [\"files.example.org:443\"]\n");
  const std::string agent = Row(Look(), "agent a1");
  EXPECT_NE(agent.find("egress: https://api.anthropic.com, through the broker; by tunnels: "
                       "files.example.org:443 only\n"),
            std::string::npos)
      << agent;
  surroundings_.environment = {{"MY_GEMINI_KEY", "key-1"}};
  Put("config.toml",
      "[[accounts]]\nid = \"g\"\nprovider = \"gemini\"\napi_key = "
      "\"secret://env/MY_GEMINI_KEY\"\n");
  Agent("a1", "[runtime]\nprovider = \"antigravity\"\n");
  const std::string inside = Row(Look(), "agent a1");
  EXPECT_NE(inside.find("egress: with the credential inside the cell; by tunnels: "),
            std::string::npos)
      << inside;
  EXPECT_EQ(inside.find("http"), std::string::npos) << inside;
}

TEST_F(DoctorTest, AnOpenNetworkIsAWarningThatSaysHowToCloseIt) {
  EXPECT_TRUE(Row(Look(), "agent a1").starts_with("ok: ")) << "control";
  Put("config.toml", "[taskcell]\negress = \"open\"\n");
  const DoctorReport report = Look();
  const std::string agent = Row(report, "agent a1");
  EXPECT_TRUE(agent.starts_with("warn: ")) << agent;
  EXPECT_NE(agent.find("egress: https://api.anthropic.com, through the broker; besides that open"),
            std::string::npos)
      << agent;
  EXPECT_NE(agent.find("egress = \"provider\" closes it"), std::string::npos) << agent;
  EXPECT_FALSE(report.refused);
}

// What no admission sees: the launcher finds out when it makes a cell.
TEST_F(DoctorTest, LimitsThatTheLauncherCannotSetRefuseEveryAgent) {
  Put("config.toml", "");
  state_.kind = cell::Engine::kNative;
  state_.fail_at = "make";
  state_.code = "resource_limits_unenforced";
  const DoctorReport report = Look();
  EXPECT_TRUE(report.refused);
  EXPECT_EQ(Row(report, "limits"), "fail: resource_limits_unenforced: told to fail");
  EXPECT_TRUE(
      Row(report, "agent a1")
          .starts_with("fail: would be refused now: resource_limits_unenforced: told to fail\n"))
      << Row(report, "agent a1");
  ASSERT_TRUE(state_.plan.has_value());
  EXPECT_EQ(state_.plan->root, cell::RootKind::kHost);
  EXPECT_EQ(Tree().count(path_ + "/sandbox"), 0U) << "nothing is left";
}

// The same: the cell finds out when it executes it.
TEST_F(DoctorTest, AProgramThatANativeCellCannotHaveRefusesItsAgent) {
  surroundings_.prove_limits = [](const Home&, probe::CellEngine&, const SandboxSettings&) {
    return Ok();
  };
  for (const char* program : {"program", "root/opt/program"}) {
    Put(program, "#!/bin/sh\n");
    ASSERT_EQ(::chmod((path_ + "/" + program).c_str(), 0755), 0);
  }
  Put("root/opt/text", "x");
  ASSERT_EQ(::chmod((path_ + "/root/opt/text").c_str(), 0644), 0);
  std::filesystem::create_symlink("/opt/program", path_ + "/root/opt/link");
  struct Place {
    std::string root;
    std::string program;
    std::string refusal;  // "": none
  };
  const std::string root = path_ + "/root";
  const std::string in_root = Text("cannot be started in the root directory `", root, "` (");
  for (const Place& place : {
           Place{"host", "/usr/bin/env", ""},
           Place{"host", "/usr/bin/no-such-claude",
                 "cannot be started in the host's programs that a cell sees ("},
           Place{"host", path_ + "/program", "a cell sees only what is below /usr"},
           Place{"host", "/usr/bin", "it is no file that can be executed"},
           Place{root, "/opt/program", ""},
           Place{root, "/opt/link", ""},
           Place{root, "/opt/text", in_root},
           Place{root, "/usr/bin/env", in_root},
       }) {
    Put("config.toml",
        Text("[taskcell]\nengine = \"native\"\nroot = \"", place.root,
             "\"\n[container.sandbox.executables]\nclaude = \"", place.program, "\"\n"));
    state_.kind = cell::Engine::kNative;
    const DoctorReport report = Look();
    const std::string agent = Row(report, "agent a1");
    EXPECT_EQ(report.refused, !place.refusal.empty()) << place.program << ": " << agent;
    EXPECT_EQ(agent.starts_with("ok: claude"), place.refusal.empty()) << agent;
    EXPECT_NE(agent.find(place.refusal), std::string::npos) << agent;
    if (place.refusal.empty()) continue;
    EXPECT_TRUE(agent.starts_with("fail: would be refused now: invalid_config: ")) << agent;
    EXPECT_NE(agent.find("set [container.sandbox.executables] claude"), std::string::npos);
  }
  Put("config.toml", "[container.sandbox.executables]\nclaude = \"/usr/bin/no-such-claude\"\n");
  state_.kind = cell::Engine::kDocker;
  EXPECT_FALSE(Look().refused) << "what an image holds is not looked at";
}

TEST_F(DoctorTest, EachRefusalOfTheEngineHasItsRow) {
  Put("config.toml", "");
  struct Fault {
    const char* at;
    const char* code;
    const char* row;
  };
  for (const Fault& fault :
       {Fault{"reach", "docker_unreachable", "engine"}, Fault{"image", "image_missing", "image"},
        Fault{"make", "resource_limits_unenforced", "limits"}}) {
    state_.rootless = true;
    state_.fail_at = fault.at;
    state_.code = fault.code;
    const DoctorReport report = Look();
    EXPECT_TRUE(report.refused);
    EXPECT_TRUE(Row(report, fault.row).starts_with(Text("fail: ", fault.code, ": ")))
        << Row(report, fault.row);
    EXPECT_NE(Row(report, "agent a1").find(fault.code), std::string::npos);
  }
}

TEST_F(DoctorTest, AnEngineThatIsDownIsExplainedOnceAndItsImageIsNotJudged) {
  Put("config.toml", "[container.sandbox]\nimage = \"img:1\"\n");
  for (const char* code : {"docker_unreachable", "engine_unsupported"}) {
    state_.fail_at = "reach";
    state_.code = code;
    const DoctorReport report = Look();
    EXPECT_EQ(Row(report, "engine"), Text("fail: ", code, ": told to fail"));
    EXPECT_EQ(Row(report, "image"),
              "warn: img:1: whether it is on this machine can't be told while the engine is down");
    EXPECT_EQ(Row(report, "scripts"),
              "warn: would be refused now: runtime_unhealthy: see `engine`");
  }
  state_.kind = cell::Engine::kNative;
  Put("config.toml", "[taskcell]\nengine = \"native\"\n");
  EXPECT_EQ(Row(Look(), "image"), "") << "its cells have none";
}

TEST_F(DoctorTest, AnAccountThatCannotBeUsedOrRestsIsNamed) {
  Put("config.toml",
      "[[accounts]]\nid = \"open\"\napi_key = \"k\"\n"
      "[[accounts]]\nid = \"resting\"\napi_key = \"secret://env/K\"\n");
  ASSERT_EQ(::chmod((path_ + "/config.toml").c_str(), 0644), 0);
  surroundings_.environment["K"] = "k2";
  Home home = OpenHome(path_).value();
  const std::vector<Account> accounts =
      LoadAccounts(ReadConfig(home).value(), home.fd.get(), surroundings_.environment).value();
  Ledger ledger = Ledger::Open(home.fd.get(), home.path).value();
  ASSERT_TRUE(ledger
                  .ChangeAccount("resting", accounts.at(1).Fingerprint(),
                                 [](AccountState& state) {
                                   state.cooling_until = int64_t{1} << 40;
                                   state.cooling_because = "billing";
                                 })
                  .ok());
  const DoctorReport report = Look();
  EXPECT_NE(Row(report, "account open").find("warn: api_key: it stands as plain text"),
            std::string::npos)
      << Row(report, "account open");
  EXPECT_NE(Row(report, "account resting").find("billing, until "), std::string::npos);
  EXPECT_TRUE(report.refused) << "none of them can pay";
}

TEST_F(DoctorTest, AConfigurationThatIsWrongIsToldByFileAndLine) {
  Put("config.toml", "[container.sandbox]\npids = 0\n");
  const DoctorReport report = Look();
  EXPECT_EQ(Row(report, "configuration"),
            "fail: config.toml: [container.sandbox] pids must be a positive integer (line 2)");
  EXPECT_TRUE(report.refused);
}

}  // namespace
}  // namespace taskcell::gateway

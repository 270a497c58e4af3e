#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <set>

#include "gateway/config/agent_config.h"
#include "gateway/ledger/ledger.h"
#include "gateway/task/admission.h"
#include "gateway/task/plan_task.h"
#include "gateway/task/prompt.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"
#include "tests/support/syscall_faults.h"
#include "tests/unit/gateway/task/run_task_fixture.h"

namespace taskcell::gateway {
namespace {

namespace fs = std::filesystem;

TEST_F(RunTaskTest, AdmittedTaskReachesTheEngineWithItsPlanAndLeavesNothingWhenItFails) {
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "container_create_failed") << answer.message;
  EXPECT_EQ(state_.calls,
            (std::vector<std::string>{"make_engine", "reach", "image", "ids", "make"}));
  ASSERT_TRUE(state_.plan.has_value());
  EXPECT_TRUE(state_.snapshot_was_there);
  EXPECT_EQ(state_.plan->uid, 1234U);
  EXPECT_EQ(state_.plan->gid, 1235U);
  EXPECT_EQ(state_.plan->limits.memory_bytes, 4294967296U);
  EXPECT_EQ(state_.plan->network, cell::NetworkMode::kProvider);
  EXPECT_EQ(state_.plan->mounts.at(0).target, "/agent");
  EXPECT_TRUE(cell::CheckPlan(*state_.plan).ok());
  EXPECT_FALSE(fs::exists(path_ + "/sandbox"));
  EXPECT_NE(answer.receipt_json.find("\"verified\":false"), std::string::npos);
  EXPECT_EQ(answer.receipt_json.find("sk-ant-api03-test"), std::string::npos);
}

TEST_F(RunTaskTest, ACellHasTunnelsExactlyWhereThereIsAPlaceForThem) {
  (void)Run();
  EXPECT_FALSE(state_.plan.value().tunnels);
  Agent("a1", "[taskcell]\nallow_hosts = [\"pypi.org:443\"]\n");
  TaskAnswer answer = Run();
  EXPECT_TRUE(state_.plan.value().tunnels);
  EXPECT_NE(answer.receipt_json.find("\"allow_hosts\":[\"pypi.org:443\"]"), std::string::npos);
  EXPECT_NE(answer.receipt_json.find("\"credential_inside\":false"), std::string::npos);
}

// The credential stays outside there too, and the event stands before any cell is made.
TEST_F(RunTaskTest, AnOpenNetworkIsAuditedAndStandsInTheReceipt) {
  constexpr std::string_view kEvent = "\"event_type\":\"task_sandbox_egress_open\"";
  constexpr std::string_view kWarning = "the cell's network is open";
  TaskAnswer closed = Run();
  EXPECT_EQ(AuditLog().find(kEvent), std::string::npos) << "control";
  EXPECT_EQ(closed.receipt_json.find(kWarning), std::string::npos) << "control";
  Put("config.toml", "[taskcell]\negress = \"open\"\n");
  state_.plan.reset();
  TaskAnswer answer = Run();
  ASSERT_TRUE(state_.plan.has_value()) << answer.message;
  EXPECT_EQ(state_.plan->network, cell::NetworkMode::kOpen);
  EXPECT_EQ(cell::ListenerCount(*state_.plan), 1U);
  EXPECT_TRUE(cell::CheckPlan(*state_.plan).ok());
  EXPECT_NE(AuditLog().find(Text(kEvent,
                                 ",\"agent_id\":\"a1\",\"severity\":\"warning\",\"details\":{"
                                 "\"run_id\":\"",
                                 state_.plan->run_id, "\",\"runtime\":\"claude\"}}\n")),
            std::string::npos)
      << AuditLog();
  EXPECT_NE(answer.receipt_json.find("\"network\":\"open\""), std::string::npos);
  EXPECT_NE(answer.receipt_json.find(kWarning), std::string::npos);
  EXPECT_NE(answer.receipt_json.find("\"credential_inside\":false"), std::string::npos);
  EXPECT_NE(answer.receipt_json.find("\"upstream\":\"https://api.anthropic.com\""),
            std::string::npos)
      << answer.receipt_json;
}

TEST_F(RunTaskTest, AnOpenNetworkThatCannotBeAuditedIsNotMade) {
  Put("config.toml", "[taskcell]\negress = \"open\"\n");
  fs::create_directory(path_ + "/security_audit.jsonl");
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "workspace_failed") << answer.message;
  EXPECT_NE(answer.message.find("is audited, and that failed"), std::string::npos)
      << answer.message;
  EXPECT_FALSE(state_.plan.has_value());
  EXPECT_FALSE(fs::exists(path_ + "/sandbox"));
  Put("config.toml", "");
  (void)Run();
  EXPECT_TRUE(state_.plan.has_value()) << "control: a closed one is made all the same";
}

TEST_F(RunTaskTest, AntigravityNeedsAGeminiKeyWhichIsInsideItsCell) {
  Agent("a1", "[runtime]\nprovider = \"antigravity\"\n[model]\npreferred = \"gemini-3-pro\"\n");
  ExpectRefused("no_account", "a Gemini API key");
  surroundings_.environment = {{"GEMINI_API_KEY", "AIza-test"}};
  surroundings_.programs.loop = "/usr/bin/true";  // it answers the hook
  TaskAnswer answer = Run();
  EXPECT_TRUE(state_.plan.value().tunnels);
  EXPECT_NE(answer.receipt_json.find("\"credential_inside\":true"), std::string::npos);
  EXPECT_NE(answer.receipt_json.find("\"upstream\":\"\""), std::string::npos);
  EXPECT_NE(answer.receipt_json.find("account `gemini-env` is inside the cell"), std::string::npos);
  EXPECT_EQ(answer.receipt_json.find("AIza-test"), std::string::npos);
}

TEST_F(RunTaskTest, TunnelsTakeAProxyThatSpeaksPlainHttpOnly) {
  constexpr std::string_view kTunnels = "[taskcell]\nallow_hosts = [\"pypi.org:443\"]\n";
  Put("config.toml", "[taskcell]\nupstream_proxy = \"https://proxy.example:3128\"\n");
  (void)Run();
  EXPECT_TRUE(state_.plan.has_value()) << "control: without tunnels it is taken";
  Agent("a1", kTunnels);
  ExpectRefused("invalid_config", "allow_hosts of agent.toml goes through tunnels");
  Agent("a1", "[runtime]\nprovider = \"agy\"\n[model]\npreferred = \"gemini-3-pro\"\n");
  ExpectRefused("invalid_config", "runtime `antigravity` goes through tunnels");
  Put("config.toml", "[taskcell]\nupstream_proxy = \"http://proxy.example:3128\"\n");
  Agent("a1", kTunnels);
  state_.plan.reset();
  (void)Run();
  ASSERT_TRUE(state_.plan.has_value());
  EXPECT_TRUE(state_.plan->tunnels);
}

TEST_F(RunTaskTest, RefusalsOfTheConfigurationComeInOrderAndBeforeAnyEngine) {
  // Everything is wrong at once; each repair brings the next refusal in the guide's order.
  Put("config.toml", "[container.sandbox]\npids = -1\n");
  Agent("a1", "[runtime]\nprovider = \"kiro\"\n[model]\npreferred = \" \"\n", "false");
  surroundings_.effective_uid = 0;
  surroundings_.environment.clear();
  ExpectRefused("invalid_config", "pids must be a positive integer");
  Put("config.toml", "[taskcell]\nengine = \"runc\"\n");
  ExpectRefused("invalid_config", "engine");
  Put("config.toml", "");
  ExpectRefused("unsupported_runtime", "kiro");
  Agent("a1", "[model]\npreferred = \" \"\n", "false");
  ExpectRefused("network_disabled", "network_access = true");
  Agent("a1", "[model]\npreferred = \" \"\n");
  ExpectRefused("root_user", "uid 0");
  surroundings_.effective_uid = 1500;
  ExpectRefused("invalid_config", "has no model");
  EXPECT_TRUE(state_.calls.empty());
  Agent("a1", "");
  state_.code = "docker_unreachable";
  state_.fail_at = "reach";
  ExpectRefused("docker_unreachable", "is the Docker daemon running?");
  state_.code = "image_missing";
  state_.fail_at = "image";
  ExpectRefused("image_missing", "run `docker pull ");
  state_.rootless = true;
  state_.code = "resource_limits_unenforced";
  state_.fail_at = "make";
  ExpectRefused("resource_limits_unenforced", "(taskcell-probe delegate prints how)");
  EXPECT_EQ(state_.plan->agent, "limits-probe");
  state_.plan.reset();
  state_.rootless = false;
  state_.fail_at = "";
  ExpectRefused("no_account", "an Anthropic API key");
  EXPECT_FALSE(state_.plan.has_value());
}

TEST_F(RunTaskTest, BadConfigurationFilesAreRefusedByName) {
  for (const auto& [content, part] : std::initializer_list<std::pair<std::string, std::string>>{
           {"not toml", "config.toml is not valid TOML"},
           {"[container]\nsandbox = 1\n", "must be a table"},
           {"[container.sandbox]\ncolour = 1\n", "unknown key `colour`"},
           {"[container.sandbox]\nimage = 1\n", "image must be a string"},
           {"[taskcell]\ncolour = 1\n", "unknown key `colour`"},
           {"[taskcell]\negress = \"host\"\n", "egress"},
           {"[taskcell]\nengine = \"native\"\negress = \"open\"\n", "never given"},
           {std::string("a = \"\xff\"\n"), "config.toml is not valid TOML"}}) {
    Put("config.toml", content);
    ExpectRefused("invalid_config", part);
  }
  fs::remove(path_ + "/config.toml");
  fs::create_directory(path_ + "/config.toml");
  ExpectRefused("invalid_config", "config.toml could not be read");
  fs::remove(path_ + "/config.toml");
  ASSERT_EQ(::mkfifo((path_ + "/config.toml").c_str(), 0600), 0);
  ExpectRefused("invalid_config", "config.toml could not be read");
}

TEST_F(RunTaskTest, BadAgentsAreRefusedByName) {
  EXPECT_EQ(Run("do it", "nobody").code, "agent_not_found");
  EXPECT_EQ(Run("do it", "../a1").code, "agent_not_found");
  Agent("a1", "", "1");
  ExpectRefused("invalid_config", "network_access must be true or false");
  Put("agents/a1/agent.toml", "broken");
  ExpectRefused("invalid_config", "is not valid TOML");
  Agent("a1", "[taskcell.limits]\nmemory_bytes = 5000000000\n");
  ExpectRefused("invalid_config", "may not be above");
  Agent("a1", "[taskcell.limits]\nmemory_bytes = 1000000\n");
  ExpectRefused("invalid_config", "below tmp_bytes + workspace_bytes");
  Agent("a1", "[runtime]\nprovider = \"openai_compat\"\n[model]\npreferred = \"nosuch/m\"\n");
  ExpectRefused("invalid_config", "nosuch");
  Agent("a1", "[runtime]\nprovider = \"openai_compat\"\n[model]\npreferred = \"openai/\"\n");
  ExpectRefused("invalid_config", "<provider>/<model>");
}

TEST_F(RunTaskTest, RefusalOfTheConfigurationEntersNothingIntoTheLedger) {
  state_.code = "image_missing";
  state_.fail_at = "image";
  EXPECT_EQ(Run().code, "image_missing");
  EXPECT_FALSE(fs::exists(path_ + "/taskcell.db"));
}

TEST_F(RunTaskTest, WhatBecameOfATaskAndItsCellsIsInTheLedger) {
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "container_create_failed");
  Home home = OpenHome(path_).value();
  Ledger ledger = Ledger::OpenExisting(home.fd.get(), home.path).value().value();
  const TaskRow task = ledger.Task(answer.task_id).value().value();
  EXPECT_EQ(task.state, TaskState::kFailed);
  EXPECT_EQ(task.code, "container_create_failed");
  EXPECT_EQ(task.agent, "a1");
  EXPECT_GE(task.ended_ms, task.started_ms);
  const std::vector<RunRow> runs = ledger.Runs(answer.task_id).value();
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].id, state_.plan->run_id);
  EXPECT_EQ(runs[0].account, "env");
  EXPECT_EQ(runs[0].engine, "fake");
  EXPECT_GE(runs[0].ended_ms, runs[0].started_ms);
  EXPECT_EQ(runs[0].deadline_ms, state_.plan->deadline_unix_ms);
  EXPECT_TRUE(ledger.Accounts().value().empty()) << "no cell, so nothing was learnt";
}

TEST_F(RunTaskTest, WithoutALedgerNothingRuns) {
  Put("taskcell.db", std::string(100, 'x'));
  const TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "workspace_failed");
  EXPECT_NE(answer.detail.find("taskcell.db"), std::string::npos) << answer.message;
  EXPECT_FALSE(state_.plan.has_value());
}

TEST_F(RunTaskTest, AProcessLimitNoCellCanHaveIsRefused) {
  Agent("a1", "[taskcell.limits]\npids = 1\n");
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "invalid_config");
  EXPECT_NE(answer.message.find("the limit pids (1) is too small"), std::string::npos);
  EXPECT_FALSE(state_.plan.has_value());
  Agent("a1", "[taskcell.limits]\npids = 2\n");
  EXPECT_EQ(Run().code, "container_create_failed") << "control";
}

TEST_F(RunTaskTest, ZeroTimeLimitIsRefused) {
  Put("agents/a1/agent.toml",
      "[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n[container]\nnetwork_access = true\n"
      "sandbox_enabled = true\ntimeout_ms = 0\n");
  ExpectRefused("invalid_config", "timeout_ms");
}

TEST_F(RunTaskTest, BadPromptsAreRefusedBeforeAnythingIsRead) {
  for (const std::string& prompt :
       {std::string(), std::string("  \n"), std::string(10U << 20U, 'a'), std::string("\xff")}) {
    TaskAnswer answer = Run(prompt);
    EXPECT_EQ(answer.code, "invalid_prompt");
    EXPECT_LE(answer.message.size(), kMaxMessageBytes);
  }
  EXPECT_EQ(AuditLog(), "");
  EXPECT_TRUE(state_.calls.empty());
}

TEST_F(RunTaskTest, MissingHomeIsNamed) {
  TaskAnswer answer = RunTask({path_ + "/none", "a1", "do it"}, surroundings_);
  EXPECT_EQ(answer.code, "workspace_failed");
  EXPECT_EQ(answer.message, "the sandbox workspace could not be created");
  EXPECT_NE(answer.detail.find("does not exist"), std::string::npos);
}

TEST_F(RunTaskTest, AgentDirectoryOverItsBoundsIsRefusedAndCleanedUp) {
  Put("agents/a1/SOUL.md", std::string(kMaxPersonaBytes + 1, 's'));
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "agent_dir_unmountable");
  EXPECT_FALSE(fs::exists(path_ + "/sandbox"));
  EXPECT_FALSE(state_.plan.has_value());
}

TEST_F(RunTaskTest, LimitsTheEngineCannotSetAreARefusalThatLeavesNothing) {
  state_.fail_at = "make";
  state_.code = "resource_limits_unenforced";
  const std::set<std::string> before = Tree();
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "resource_limits_unenforced");
  EXPECT_EQ(Tree(), before);
  EXPECT_NE(AuditLog().find("task_sandbox_unavailable"), std::string::npos);
}

// What Docker 20.10 and 26 say; a value the guide allows may be more than a host has.
TEST_F(RunTaskTest, AValueThatTheEngineRefusesIsNamedByItsKey) {
  struct Row {
    const char* said;
    const char* part;
  };
  for (const Row& row :
       {Row{"container create: HTTP 400: Range of CPUs is from 0.01 to 2.00, as there are only 2 "
            "CPUs available",
            "[container.sandbox] cpu_millis = 1000 is not what this engine can set"},
        Row{"container create: HTTP 400: Minimum memory limit allowed is 6MB",
            "[container.sandbox] memory_bytes = 4294967296 "},
        Row{"container create: HTTP 400: pids limit not supported", "[container.sandbox] pids = "},
        Row{"container create: HTTP 409: the name is in use", "could not be created"}}) {
    state_.make_error = Error(Kind::kSystem, row.said).Coded("container_create_failed");
    const TaskAnswer answer = Run();
    EXPECT_EQ(answer.code, "container_create_failed");
    EXPECT_NE(answer.message.find(row.part), std::string::npos) << answer.message;
    EXPECT_EQ(answer.message.find("HTTP"), std::string::npos) << answer.message;
    EXPECT_NE(answer.detail.find(row.said), std::string::npos) << answer.detail;
  }
}

TEST_F(RunTaskTest, CancelBeforeTheCellExistsMakesNone) {
  sys::Pipe pipe = sys::MakePipe().value();
  ASSERT_TRUE(sys::WriteAll(pipe.write_end.get(), "x").ok());
  surroundings_.cancel_fd = pipe.read_end.get();
  const std::set<std::string> before = Tree();
  EXPECT_EQ(Run().code, "stopped");
  EXPECT_FALSE(state_.plan.has_value());
  EXPECT_EQ(Tree(), before);
}

TEST_F(RunTaskTest, WhatFailsAfterACancelIsTheCancel) {
  state_.fail_at = "reach";
  state_.code = "docker_unreachable";
  EXPECT_EQ(Run().code, "docker_unreachable") << "control";
  sys::Pipe pipe = sys::MakePipe().value();
  ASSERT_TRUE(sys::WriteAll(pipe.write_end.get(), "x").ok());
  surroundings_.cancel_fd = pipe.read_end.get();
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "stopped");
  EXPECT_EQ(answer.message, "the sandbox run was stopped");
  EXPECT_EQ(answer.detail, "told to fail");
}

TEST_F(RunTaskTest, AnEscapeHatchWithAnOddValueIsWarnedAbout) {
  Put("config.toml", "[container.sandbox]\nwhen_unavailable = 5\n");
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "container_create_failed") << "control: it is no refusal";
  ASSERT_EQ(answer.warnings.size(), 1U);
  EXPECT_NE(answer.warnings[0].find("when_unavailable has an unknown value"), std::string::npos);
}

TEST_F(RunTaskTest, TimeThatIsOverBeforeTheCellExistsMakesNone) {
  Put("agents/a1/agent.toml",
      "[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n[container]\nnetwork_access = true\n"
      "sandbox_enabled = true\ntimeout_ms = 1\n");
  state_.slow = true;
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "timeout");
  EXPECT_EQ(answer.message, "the sandbox task timed out after 0 s");
  EXPECT_FALSE(state_.plan.has_value());
}

TEST_F(RunTaskTest, AuditLogThatCannotBeWrittenIsOnlyWarnedAbout) {
  fs::create_directory(path_ + "/security_audit.jsonl");
  Agent("a1", "", "false");
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "network_disabled");
  EXPECT_EQ(answer.warnings.size(), 1U);
}

TEST_F(RunTaskTest, UnsafeEntriesAreLeftOutWithAWarning) {
  ASSERT_EQ(::symlink("/etc/passwd", (path_ + "/agents/a1/IDENTITY.md").c_str()), 0);
  TaskAnswer answer = Run();
  bool warned = false;
  for (const std::string& warning : answer.warnings)
    warned = warned || warning.find("IDENTITY.md") != std::string::npos;
  EXPECT_TRUE(warned);
  const std::string log = Log();
  constexpr std::string_view kLine =
      "WARN agent_entry_left_out agent=a1 message=\"agent entry 'IDENTITY.md' left out";
  const std::size_t at = log.find(kLine);
  EXPECT_NE(at, std::string::npos) << log;
  EXPECT_EQ(log.find("agent_entry_left_out", at + kLine.size()), std::string::npos) << log;
}

TEST_F(RunTaskTest, AWayToTheAgentThatOthersMayWriteIsRefusedWithItsRemedy) {
  ASSERT_EQ(::chmod((path_ + "/agents").c_str(), 0777), 0);
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "agent_dir_unmountable");
  EXPECT_NE(answer.message.find("chmod go-w"), std::string::npos) << answer.message;
  EXPECT_EQ(answer.message.find(path_), std::string::npos) << answer.message;
  EXPECT_NE(answer.detail.find(Text("chmod go-w ", path_, "/agents")), std::string::npos)
      << answer.detail;
  EXPECT_FALSE(state_.plan.has_value());
  EXPECT_FALSE(fs::exists(path_ + "/sandbox"));
}

// The prompt is what the provider gets, the snapshot is what the cell gets.
TEST_F(RunTaskTest, ALinkedCanaryIsNeitherInThePromptNorInTheSnapshot) {
  constexpr char kCanary[] = "the canary that nobody may read";
  Put("outside/key", kCanary);
  const std::string key = path_ + "/outside/key";
  const std::string agent_path = path_ + "/agents/a1/";
  fs::remove(agent_path + "SOUL.md");
  ASSERT_EQ(::symlink(key.c_str(), (agent_path + "SOUL.md").c_str()), 0);
  ASSERT_EQ(::link(key.c_str(), (agent_path + "IDENTITY.md").c_str()), 0);
  fs::create_directories(agent_path + "wiki");
  ASSERT_EQ(::link(key.c_str(), (agent_path + "wiki/key").c_str()), 0);
  ASSERT_EQ(::symlink(key.c_str(), (agent_path + "wiki/link").c_str()), 0);
  Put("agents/a1/CLAUDE.md", "plain");
  Home home = OpenHome(path_).value();
  gateway::Agent agent = FindAgent(home, "a1").value();
  Admission admission;
  admission.engine = std::make_unique<FakeEngine>(state_);
  PlannedTask task =
      PlanTask(home, agent, admission, surroundings_, {path_, "a1", "do it"}).value();
  EXPECT_EQ(task.prompt.find(kCanary), std::string::npos);
  EXPECT_NE(task.prompt.find("do it"), std::string::npos) << "control: it is the prompt";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(task.snapshot.path())) {
    EXPECT_FALSE(entry.is_symlink()) << entry.path();
    if (!entry.is_regular_file()) continue;
    ++files;
    std::ifstream in(entry.path());
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "plain") << entry.path();
  }
  EXPECT_EQ(files, 1) << "control: there is a snapshot";
  EXPECT_EQ(task.snapshot.content().warnings.size(), 4U);
}

TEST_F(RunTaskTest, ASecondTaskOfAnUnchangedAgentUsesTheSameSnapshot) {
  ::usleep(150'000);  // what was changed a moment ago is copied each time
  Home home = OpenHome(path_).value();
  gateway::Agent agent = FindAgent(home, "a1").value();
  Admission admission;
  admission.engine = std::make_unique<FakeEngine>(state_);
  auto plan = [&] {
    return PlanTask(home, agent, admission, surroundings_, {path_, "a1", "go"}).value();
  };
  PlannedTask first = plan();
  EXPECT_TRUE(first.snapshot.Release(true).ok());
  PlannedTask second = plan();
  EXPECT_TRUE(second.snapshot.is_reused());
  EXPECT_EQ(second.plan.mounts[0].source, first.plan.mounts[0].source);
  EXPECT_EQ(second.prompt, first.prompt);
  Put("agents/a1/SOUL.md", "stern");
  EXPECT_NE(plan().prompt.find("stern"), std::string::npos);
}

TEST_F(RunTaskTest, AFullDiskIsNoFaultOfTheAgentDirectory) {
  const int status = test::InChild([&] {
    if (!test::InstallFaults({{SYS_copy_file_range, ENOSPC}, {SYS_ioctl, EOPNOTSUPP}})) return 90;
    TaskAnswer answer = Run();
    if (answer.code != "workspace_failed") return 1;
    return fs::exists(path_ + "/sandbox") ? 2 : 0;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::gateway

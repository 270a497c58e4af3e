#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <thread>

#include "gateway/task/prompt.h"
#include "gateway/task/task.h"
#include "launcher/base/text.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"

namespace taskcell::gateway {
namespace {

namespace fs = std::filesystem;

// An engine that makes nothing: it notes what it is asked and fails where it is told to.
struct FakeState {
  std::vector<std::string> calls;
  std::string fail_at;
  std::string_view code;
  std::optional<cell::CellPlan> plan;
  bool snapshot_was_there = false;
  bool slow = false;  // every call takes some milliseconds
};

class FakeEngine : public probe::CellEngine {
 public:
  explicit FakeEngine(FakeState& state) : state_(state) {}
  cell::Engine kind() const override { return cell::Engine::kDocker; }
  std::string Name() const override { return "fake"; }
  Status CheckReachable() override { return Step("reach"); }
  Result<probe::ImageFacts> CheckImage(const std::string& /*image*/) override {
    TRY(Step("image"));
    return probe::ImageFacts{};
  }
  Status CheckLimits() override { return Step("limits"); }
  Result<probe::CellIds> ChooseIds(const std::string& /*run_id*/) override {
    TRY(Step("ids"));
    return probe::CellIds{1234, 1235, true, "a test's ids"};
  }
  Result<std::unique_ptr<probe::RunningCell>> Make(cell::CellPlan plan,
                                                   const probe::CellPlaces& places) override {
    state_.snapshot_was_there = fs::exists(places.run_directory + "/agent/SOUL.md");
    state_.plan = std::move(plan);
    TRY(Step("make"));
    return Error(Kind::kInternal, "this engine makes no cells").Coded("container_create_failed");
  }

 private:
  Status Step(const std::string& name) {
    state_.calls.push_back(name);
    if (state_.slow) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (name != state_.fail_at) return Ok();
    return Error(Kind::kSystem, "told to fail").Coded(state_.code);
  }
  FakeState& state_;
};

class RunTaskTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    Put("agents/a1/SOUL.md", "kind");
    Agent("a1", "");
    surroundings_.environment = {{"ANTHROPIC_API_KEY", "sk-ant-api03-test"}};
    surroundings_.effective_uid = 1500;
    surroundings_.programs = {"/bin/true", "/bin/true", "/bin/true"};
    surroundings_.make_engine =
        [this](const TaskcellSettings&) -> Result<std::unique_ptr<probe::CellEngine>> {
      state_.calls.emplace_back("make_engine");
      return std::unique_ptr<probe::CellEngine>(std::make_unique<FakeEngine>(state_));
    };
    surroundings_.broker = []() -> Result<Broker*> {
      return Error(Kind::kInternal, "no cell, so nobody may ask for the broker");
    };
  }
  void TearDown() override {
    UniqueFd tmp = sys::Open("/tmp", O_RDONLY | O_DIRECTORY).value();
    EXPECT_TRUE(mounts::RemoveTree(tmp.get(), path_.substr(5)).ok());
  }

  void Put(const std::string& name, std::string_view content) const {
    fs::create_directories(fs::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name, std::ios::binary) << content;
  }
  // agent.toml of an agent that may run; `changes` is appended.
  void Agent(const std::string& name, std::string_view changes,
             std::string_view network = "true") const {
    Put(Text("agents/", name, "/agent.toml"),
        Text("[agent]\nname = \"", name, "\"\n[container]\nsandbox_enabled = true\n",
             "network_access = ", network, "\ntimeout_ms = 20000\n",
             changes.find("[model]") == std::string_view::npos
                 ? "[model]\npreferred = \"claude-sonnet-4-5\"\n"
                 : "",
             changes));
  }
  TaskAnswer Run(const std::string& prompt = "do it", const std::string& agent = "a1") {
    return RunTask({path_, agent, prompt}, surroundings_);
  }
  // Everything below the home but the audit log.
  std::set<std::string> Tree() const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path_))
      if (entry.path().filename() != "security_audit.jsonl") names.insert(entry.path());
    return names;
  }
  std::string AuditLog() const {
    std::ifstream in(path_ + "/security_audit.jsonl");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Runs and asserts a refusal that leaves nothing, asks the engine nothing, and is audited.
  void ExpectRefused(std::string_view code, std::string_view part) {
    const std::set<std::string> before = Tree();
    TaskAnswer answer = Run();
    EXPECT_EQ(answer.code, code) << answer.message;
    EXPECT_NE(answer.message.find(part), std::string::npos) << answer.message;
    EXPECT_FALSE(answer.reply.has_value());
    EXPECT_EQ(answer.receipt_json, "");
    EXPECT_EQ(Tree(), before);
    EXPECT_NE(AuditLog().find(Text("\"reason\":\"", code, "\"")), std::string::npos) << AuditLog();
  }

  std::string path_ = "/tmp/taskcell-task-test-XXXXXX";
  FakeState state_;
  Surroundings surroundings_;
};

TEST_F(RunTaskTest, AdmittedTaskReachesTheEngineWithItsPlanAndLeavesNothingWhenItFails) {
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "container_create_failed") << answer.message;
  EXPECT_EQ(state_.calls,
            (std::vector<std::string>{"make_engine", "reach", "image", "limits", "ids", "make"}));
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

TEST_F(RunTaskTest, RefusalsOfTheConfigurationComeInOrderAndBeforeAnyEngine) {
  // Everything is wrong at once; each repair brings the next refusal in the guide's order.
  Put("config.toml", "[container.sandbox]\npids = -1\n");
  Agent("a1", "[runtime]\nprovider = \"grok\"\n[model]\npreferred = \" \"\n", "false");
  surroundings_.effective_uid = 0;
  surroundings_.environment.clear();
  ExpectRefused("invalid_config", "pids must be a positive integer");
  Put("config.toml", "[taskcell]\nengine = \"podman\"\n");
  ExpectRefused("invalid_config", "engine");
  Put("config.toml", "");
  ExpectRefused("unsupported_runtime", "grok");
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
  ExpectRefused("docker_unreachable", "told to fail");
  state_.code = "image_missing";
  state_.fail_at = "image";
  ExpectRefused("image_missing", "told to fail");
  state_.code = "resource_limits_unenforced";
  state_.fail_at = "limits";
  ExpectRefused("resource_limits_unenforced", "told to fail");
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
           {"[taskcell]\negress = \"open\"\n", "egress"},
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

TEST_F(RunTaskTest, ZeroTimeLimitIsRefused) {
  Put("agents/a1/agent.toml",
      "[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n[container]\nnetwork_access = true\n"
      "timeout_ms = 0\n");
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
  EXPECT_NE(answer.message.find("does not exist"), std::string::npos);
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

TEST_F(RunTaskTest, CancelBeforeTheCellExistsMakesNone) {
  sys::Pipe pipe = sys::MakePipe().value();
  ASSERT_TRUE(sys::WriteAll(pipe.write_end.get(), "x").ok());
  surroundings_.cancel_fd = pipe.read_end.get();
  const std::set<std::string> before = Tree();
  EXPECT_EQ(Run().code, "stopped");
  EXPECT_FALSE(state_.plan.has_value());
  EXPECT_EQ(Tree(), before);
}

TEST_F(RunTaskTest, TimeThatIsOverBeforeTheCellExistsMakesNone) {
  Put("agents/a1/agent.toml",
      "[agent]\nname = \"a1\"\n[model]\npreferred = \"m\"\n[container]\nnetwork_access = true\n"
      "timeout_ms = 1\n");
  state_.slow = true;
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "timeout");
  EXPECT_EQ(answer.message, "the sandbox task timed out after 0 s");
  EXPECT_FALSE(state_.plan.has_value());
}

TEST_F(RunTaskTest, OpenEscapeHatchRunsNothingInThisVersionAndSaysSo) {
  Put("config.toml", "[container.sandbox]\npids = -1\nwhen_unavailable = \"run_unsandboxed\"\n");
  TaskAnswer answer = Run();
  EXPECT_EQ(answer.code, "invalid_config");
  ASSERT_EQ(answer.warnings.size(), 1U);
  EXPECT_NE(answer.warnings[0].find("was not run"), std::string::npos);
  EXPECT_EQ(AuditLog().find("task_sandbox_bypassed"), std::string::npos);
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
}

}  // namespace
}  // namespace taskcell::gateway

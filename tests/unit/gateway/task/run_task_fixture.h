#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gateway/task/limits_probe.h"
#include "gateway/task/task.h"
#include "launcher/base/text.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::gateway {

// An engine that notes what it is asked, fails where it is told to, and makes the cell it is given,
// or none.
struct FakeState {
  std::vector<std::string> calls;
  std::string fail_at;
  std::string_view code;
  std::map<std::string, std::string_view> faults;  // more of both: where, and the code
  std::string fault_text = "told to fail";
  std::optional<cell::CellPlan> plan;
  bool snapshot_was_there = false;
  std::optional<Error> make_error;
  bool may_have_made = false;
  bool rootless = false;
  std::string identity = "this engine";
  cell::Engine kind = cell::Engine::kDocker;
  bool slow = false;  // every call takes some milliseconds
  std::function<std::unique_ptr<probe::RunningCell>(const cell::CellPlan&)>
      make_cell;  // empty: none
};

class FakeEngine : public probe::CellEngine {
 public:
  explicit FakeEngine(FakeState& state) : state_(state) {}
  cell::Engine kind() const override { return state_.kind; }
  std::string Name() const override { return "fake"; }
  Status CheckReachable() override { return Step("reach"); }
  Result<probe::ImageFacts> CheckImage(const std::string& /*image*/) override {
    TRY(Step("image"));
    return probe::ImageFacts{};
  }
  bool NeedsLimitsProbe() const override { return state_.rootless; }
  std::string Identity() const override { return state_.identity; }
  Result<probe::CellIds> ChooseIds(const std::string& /*run_id*/) override {
    TRY(Step("ids"));
    return probe::CellIds{1234, 1235, true, "a test's ids"};
  }
  Result<std::unique_ptr<probe::RunningCell>> Make(cell::CellPlan plan,
                                                   const probe::CellPlaces& /*places*/) override {
    state_.plan = std::move(plan);
    state_.snapshot_was_there = !state_.plan->mounts.empty() &&
                                std::filesystem::exists(state_.plan->mounts[0].source + "/SOUL.md");
    TRY(Step("make"));
    if (state_.make_error.has_value()) return *state_.make_error;
    if (state_.make_cell) return state_.make_cell(*state_.plan);
    return Error(Kind::kInternal, "this engine makes no cells").Coded("container_create_failed");
  }
  bool MayHaveMade() const override { return state_.may_have_made; }

 private:
  Status Step(const std::string& name) {
    state_.calls.push_back(name);
    if (state_.slow) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    auto fault = state_.faults.find(name);
    if (fault != state_.faults.end())
      return Error(Kind::kSystem, state_.fault_text).Coded(fault->second);
    if (name != state_.fail_at) return Ok();
    return Error(Kind::kSystem, state_.fault_text).Coded(state_.code);
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
    surroundings_.programs = {"/bin/true", test::Program("taskcell-launch"), "/bin/true"};
    surroundings_.make_engine =
        [this](const TaskcellSettings&) -> Result<std::unique_ptr<probe::CellEngine>> {
      state_.calls.emplace_back("make_engine");
      return std::unique_ptr<probe::CellEngine>(std::make_unique<FakeEngine>(state_));
    };
    surroundings_.prove_limits = [this](const Home& home, probe::CellEngine& engine,
                                        const SandboxSettings& settings) {
      state_.calls.emplace_back("limits");
      return limits_probe_.Check(home, engine, settings, surroundings_.programs);
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
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
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
  // Everything below the home but its records: the audit log, the gateway's log and the ledger.
  std::set<std::string> Tree() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_))
      if (entry.path().filename() != "security_audit.jsonl" &&
          entry.path().string().find("/logs") == std::string::npos &&
          !entry.path().filename().string().starts_with("taskcell.db"))
        names.insert(entry.path());
    return names;
  }
  // The gateway's log of all days.
  std::string Log() const {
    std::string text;
    const std::filesystem::path logs = path_ + "/logs";
    if (!std::filesystem::exists(logs)) return text;
    for (const auto& entry : std::filesystem::directory_iterator(logs)) {
      std::ifstream in(entry.path());
      text += std::string(std::istreambuf_iterator<char>(in), {});
    }
    return text;
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
    const std::string all = Text(answer.message, " [", answer.detail, "]");
    EXPECT_NE(all.find(part), std::string::npos) << all;
    EXPECT_FALSE(answer.reply.has_value());
    EXPECT_EQ(answer.receipt_json, "");
    EXPECT_EQ(Tree(), before);
    EXPECT_NE(AuditLog().find(Text("\"reason\":\"", code, "\"")), std::string::npos) << AuditLog();
  }

  std::string path_ = "/tmp/taskcell-task-test-XXXXXX";
  FakeState state_;
  LimitsProbe limits_probe_;
  Surroundings surroundings_;
};

}  // namespace taskcell::gateway

// `taskcell run` from end to end: a real engine, the real cell, our own loop in it, and a provider
// on loopback that drives the loop. Runs on each engine.
#include "tests/engine/task_test.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "launcher/base/text.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {

namespace fs = std::filesystem;

void TaskTest::SetUp() {
  TaskFixture::SetUp();
  if (IsSkipped() || HasFatalFailure()) return;
  // A value that is nowhere but in the agent directory of this home.
  value_ = Text("value-", std::chrono::steady_clock::now().time_since_epoch().count());
  Put("agents/a1/wiki/value.txt", value_);
  Put("agents/a1/SOUL.md", "Be brief.");
}

Outcome TaskTest::RunTask(const std::string& url, std::vector<std::string> options,
                          std::vector<std::string> before, std::string_view key) const {
  GiveHomeToUser();
  return RunClient(url, std::move(options), std::move(before), key);
}

std::string TaskTest::MakePidFile() const {
  std::string path = At("pid");
  std::ofstream(path).close();
  EXPECT_EQ(::chown(path.c_str(), user_->uid, user_->gid), 0);
  return path;
}

std::vector<std::string> TaskTest::TellingPidTo(const std::string& path) {
  return {"/bin/sh", "-c", R"(echo $$ >"$0"; exec "$@")", path};
}

int TaskTest::SignalTo(const std::string& path, int signal) {
  const std::optional<uint64_t> pid = ParseUnsigned(Trim(ReadText(path)));
  return pid ? ::kill(static_cast<pid_t>(*pid), signal) : -1;
}

TaskTest::Json TaskTest::Steps() {
  return {{"steps",
           {{{"do", "write"}, {"path", "/workspace/note.txt"}, {"content", "noted"}},
            {{"do", "read"}, {"path", "/workspace/note.txt"}},
            {{"do", "read"}, {"path", "/agent/wiki/value.txt"}}}},
          {"reply", "{1} and {last}"}};
}

namespace {

TEST_F(TaskTest, ReplyHoldsWhatOnlyAToolCallInTheCellCouldRead) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  Outcome run = RunTask(provider.Url("/v1"), {});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, Text("noted and ", value_, "\n")) << run.err;
}

TEST_F(TaskTest, ReceiptShowsAskedAndSeenAndNoSecret) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  Outcome run = RunTask(provider.Url("/v1"), {"--json"});
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["code"], "ok");
  const Json& receipt = answer["receipt"];
  EXPECT_EQ(receipt["verified"], true);
  for (const Json& limit : receipt["limits"])
    EXPECT_EQ(limit["asked"], limit["seen_outside"]) << limit;
  EXPECT_EQ(receipt["seen"]["interfaces"], Json({"lo"}));
  EXPECT_EQ(receipt["egress"]["record"]["totals"]["model_calls"], 4);
  EXPECT_EQ(receipt["egress"]["overridden"], true);
  EXPECT_EQ(run.out.find(kKey), std::string::npos);
  const std::string on_disk = ReadText(answer["receipt_path"]);
  EXPECT_EQ(Json::parse(on_disk), receipt);
}

TEST_F(TaskTest, ItsReceiptIsInTheChainWithWhatItCostAndCountsAgainstTheBudget) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  std::ofstream(path_ + "/home/config.toml", std::ios::app)
      << "[taskcell.prices.test-model]\ninput = 100000\noutput = 1000000\n"
         "[[accounts]]\nid = \"only\"\nprovider = \"openai\"\n"
         "api_key = \"secret://env/OPENAI_API_KEY\"\nmonthly_budget_cents = 30\n";
  Outcome run = RunTask(provider.Url("/v1"), {"--json"});
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  const Json receipt = Json::parse(run.out)["receipt"];
  EXPECT_EQ(receipt["usage"]["model_calls"], 4);
  EXPECT_EQ(receipt["usage"]["unpriced_calls"], 0);
  EXPECT_EQ(receipt["usage"]["cost_microcents"], 4 * 8'100'000) << receipt["usage"];
  EXPECT_EQ(receipt["task_id"], Json::parse(run.out)["task_id"]);
  auto verify = [&] {
    return test::Run({Program("taskcell"), "audit", "verify", "--home", path_ + "/home"},
                     {user_, {}, "", "", 20000, {}});
  };
  Outcome verified = verify();
  EXPECT_EQ(verified.status, 0) << verified.out << verified.err;
  EXPECT_NE(verified.out.find("1 receipt is what was written"), std::string::npos) << verified.out;
  // The account has spent its month.
  run = RunTask(provider.Url("/v1"), {"--json"});
  EXPECT_EQ(run.status, 3) << run.out;
  EXPECT_EQ(Json::parse(run.out)["code"], "no_account");
  EXPECT_NE(run.out.find("monthly_budget_cents (30) is spent"), std::string::npos) << run.out;
  std::string chain = ReadText(path_ + "/home/receipts.jsonl");
  chain[chain.find("\"code\":\"ok\"") + 8] = 'O';
  Put("receipts.jsonl", chain);
  GiveHomeToUser();
  verified = verify();
  EXPECT_EQ(verified.status, 1) << verified.out;
  EXPECT_NE(verified.out.find("receipts.jsonl: line 1 "), std::string::npos) << verified.out;
}

// A call costs 8.1 cents here, and the task would make four.
TEST_F(TaskTest, ItMayAskForNothingMoreOnceItsAccountHasSpentItsMonth) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  std::ofstream(path_ + "/home/config.toml", std::ios::app)
      << "[taskcell.prices.test-model]\ninput = 100000\noutput = 1000000\n"
         "[[accounts]]\nid = \"only\"\nprovider = \"openai\"\n"
         "api_key = \"secret://env/OPENAI_API_KEY\"\nmonthly_budget_cents = 10\n";
  const Outcome run = RunTask(provider.Url("/v1"), {"--json"});
  EXPECT_EQ(run.status, 1) << run.out << run.err;
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["code"], "budget_spent") << answer;
  EXPECT_NE(std::string(answer["message"]).find("monthly_budget_cents (10)"), std::string::npos);
  EXPECT_EQ(answer["receipt"]["usage"]["model_calls"], 2);
  EXPECT_EQ(answer["receipt"]["egress"]["record"]["requests"].back()["code"], "egress_budget");
}

TEST_F(TaskTest, WhatItLeavesInOutIsExportedAndWhatItIsGivenIsInInput) {
  Agent(30000, "[taskcell]\nexport = true\n");
  gateway::ProviderProcess provider = MakeProvider(
      {{"steps",
        {{{"do", "read"}, {"path", "/input/given.txt"}},
         {{"do", "write"}, {"path", "/input/given.txt"}, {"content", "x"}},
         {{"do", "write"}, {"path", "/workspace/out/sub/report.txt"}, {"content", "the report"}}}},
       {"reply", "{0}"}});
  ASSERT_TRUE(provider.IsUp());
  Put("given.txt", "from outside");
  Outcome run = RunTask(provider.Url("/v1"), {"--json", "--input", path_ + "/home/given.txt"});
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["reply"], "from outside");
  EXPECT_EQ(ReadText(path_ + "/home/given.txt"), "from outside");
  const Json& exported = answer["receipt"]["export"];
  EXPECT_EQ(exported["outcome"], "complete") << exported;
  EXPECT_EQ(exported["files"], 1);
  const std::string path = answer["export_path"];
  EXPECT_EQ(path, exported["path"]);
  EXPECT_EQ(ReadText(path + "/files/sub/report.txt"), "the report");
  EXPECT_EQ(Json::parse(ReadText(path + "/manifest.json"))["files"][0]["bytes"], 10);
  EXPECT_NE(ReadText(path_ + "/home/security_audit.jsonl").find("task_sandbox_exported"),
            std::string::npos);
  bool is_mounted = false;
  for (const Json& mount : answer["receipt"]["cell"]["mounts"])
    if (mount["target"] == "/input") is_mounted = mount["writable"] == false;
  EXPECT_TRUE(is_mounted) << answer["receipt"]["cell"];
  // Without the key nothing leaves the cell.
  Agent(30000);
  run = RunTask(provider.Url("/v1"), {"--json", "--input", path_ + "/home/given.txt"});
  ASSERT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_TRUE(Json::parse(run.out)["receipt"]["export"].is_null());
  fs::create_symlink("given.txt", path_ + "/home/link");
  run = RunTask(provider.Url("/v1"), {"--json", "--input", path_ + "/home/link"});
  EXPECT_EQ(run.status, 2) << run.out;
  EXPECT_EQ(Json::parse(run.out)["code"], "invalid_input");
}

TEST_F(TaskTest, RejectedCredentialIsNamedAndNothingIsPrinted) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  Outcome run = RunTask(provider.Url("/v1"), {}, {}, "sk-a-wrong-credential-0000000");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("auth_failed: authentication failed: the openai-compat provider rejected "
                         "the credential of account `openai-env`"),
            std::string::npos)
      << run.err;
}

TEST_F(TaskTest, ProviderFailuresHaveTheirCodes) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  for (const auto& [mode, code] : std::initializer_list<std::pair<std::string, std::string>>{
           {"429", "rate_limited"},
           {"402", "rate_limited"},
           {"500", "provider_unavailable"},
           {"garbage", "provider_unavailable"},
           {"echo-body", "transport_failed"},
           {"echo-header", "transport_failed"}}) {
    fs::remove(path_ + "/home/taskcell.db");  // the account is not to be held to the last mode
    Outcome run = RunTask(provider.Url("/mode/" + mode + "/v1"), {"--json"});
    EXPECT_EQ(run.status, 1) << mode << run.err;
    const Json answer = Json::parse(run.out);
    EXPECT_EQ(answer["code"], code) << mode << ": " << run.out;
    EXPECT_TRUE(answer["reply"].is_null());
    EXPECT_EQ(run.out.find(kKey), std::string::npos) << mode;
  }
}

TEST_F(TaskTest, TheNextAccountIsTriedAndTheRefusedOneRests) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  std::ofstream(path_ + "/home/config.toml", std::ios::app)
      << "[[accounts]]\nid = \"dead\"\nprovider = \"openai\"\npriority = 1\n"
         "api_key = \"secret://env/HOME\"\n"
         "[[accounts]]\nid = \"live\"\nprovider = \"openai\"\npriority = 2\n"
         "api_key = \"secret://env/OPENAI_API_KEY\"\n";
  fs::create_symlink("SOUL.md", AgentFile("IDENTITY.md"));
  Outcome first = RunTask(provider.Url("/v1"), {"--json"});
  ASSERT_EQ(first.status, 0) << first.out << first.err;
  const Json answer = Json::parse(first.out);
  EXPECT_EQ(answer["receipt"]["account"], "live");
  std::string log;
  for (const auto& each : fs::directory_iterator(At("home/logs"))) log += ReadText(each.path());
  for (const auto& [told, what] :
       {std::pair(answer["warnings"].dump(), "agent entry 'IDENTITY.md' left out"),
        std::pair(log, "agent_entry_left_out")}) {
    const std::size_t at = told.find(what);
    ASSERT_NE(at, std::string::npos) << told;
    EXPECT_EQ(told.find(what, at + 1), std::string::npos) << "with each account again: " << told;
  }
  EXPECT_EQ(answer["reply"], Text("noted and ", value_));
  EXPECT_NE(first.out.find("account `dead`: auth_failed; account `live` is tried next"),
            std::string::npos)
      << first.out;
  const std::string receipts = path_ + "/home/sandbox/receipts";
  auto count = [&] { return std::distance(fs::directory_iterator(receipts), {}); };
  EXPECT_EQ(count(), 2);
  Outcome second = RunTask(provider.Url("/v1"), {"--json"});
  ASSERT_EQ(second.status, 0) << second.out;
  EXPECT_EQ(count(), 3) << "the refused account was tried again";
}

TEST_F(TaskTest, ProgramThatIsNotThereIsInvalidConfigAndNotAMissingReply) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  Put("agents/a1/agent.toml",
      "[agent]\nname = \"a1\"\n[model]\npreferred = \"claude-sonnet-4-5\"\n[container]\n"
      "sandbox_enabled = true\nnetwork_access = true\ntimeout_ms = 30000\n");
  std::ofstream(path_ + "/home/config.toml", std::ios::app)
      << "[container.sandbox.executables]\nclaude = \"/usr/bin/no-such-claude\"\n"
         "[[accounts]]\nid = \"mine\"\napi_key = \"secret://env/OPENAI_API_KEY\"\n";
  Outcome run = RunTask(provider.Url("/v1"), {"--json"});
  EXPECT_EQ(run.status, 3) << run.err;
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["code"], "invalid_config") << run.out;
  EXPECT_NE(answer["message"].get<std::string>().find(
                "`/usr/bin/no-such-claude` cannot be started in the "),
            std::string::npos)
      << answer["message"];
  EXPECT_NE(answer["message"].get<std::string>().find("[container.sandbox.executables] claude"),
            std::string::npos);
}

TEST_F(TaskTest, TaskThatHangsEndsAtItsTimeLimit) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  Agent(4000);
  const auto begun = std::chrono::steady_clock::now();
  Outcome run = RunTask(provider.Url("/mode/hang/v1"), {});
  EXPECT_EQ(run.status, 124) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("timeout: the sandbox task timed out after 4 s"), std::string::npos)
      << run.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

TEST_F(TaskTest, SignalCancelsTheTaskCleanly) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  for (int signal : {SIGINT, SIGTERM}) {
    const std::string pid_file = MakePidFile();
    const std::size_t asked = provider.Log().size();
    std::thread sender([&] {
      EXPECT_TRUE(WaitFor([&] { return provider.Log().size() > asked; }));
      EXPECT_EQ(SignalTo(pid_file, signal), 0);
    });
    Outcome run = RunTask(provider.Url("/mode/hang/v1"), {}, TellingPidTo(pid_file));
    sender.join();
    EXPECT_EQ(run.status, 130) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find("stopped: the sandbox run was stopped"), std::string::npos) << run.err;
  }
}

TEST_F(TaskTest, TaskOfAKilledClientIsInterruptedAndWhatItLeftIsSwept) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  auto sweep = [&](std::time_t now) {
    test::RunOptions as_user;
    as_user.user = user_;
    as_user.environment = {"DOCKER_HOST=unix://" + socket_};
    as_user.timeout_ms = 60000;
    Outcome swept = test::Run({test::Program("taskcell-casedriver"), "sweep", "--home",
                               path_ + "/home", "--now", std::to_string(now)},
                              as_user);
    EXPECT_EQ(swept.status, 0) << swept.out << swept.err;
    return Json::parse(swept.out);
  };
  // Killed when the provider has its first request.
  const std::string pid_file = MakePidFile();
  std::thread killer([&] {
    EXPECT_TRUE(WaitFor([&] { return !provider.Log().empty(); }));
    EXPECT_EQ(SignalTo(pid_file, SIGKILL), 0);
  });
  Outcome run = RunTask(provider.Url("/mode/hang/v1"), {}, TellingPidTo(pid_file));
  killer.join();
  EXPECT_EQ(run.status, 137) << run.err;
  const std::string runs = path_ + "/home/sandbox/runs";
  ASSERT_FALSE(fs::is_empty(runs)) << "control: the killed client could not clean up";
  const std::string run_id = fs::directory_iterator(runs)->path().filename();

  // Too early for what is on disk; the task's end is plain at once.
  Json early = sweep(std::time(nullptr));
  EXPECT_EQ(early["interrupted"].size(), 1U) << early;
  EXPECT_TRUE(early["directories"].empty()) << early;
  Json late = sweep(std::time(nullptr) + 700);
  EXPECT_TRUE(late["interrupted"].empty()) << late;
  EXPECT_EQ(late["directories"], Json({run_id})) << late;
  EXPECT_TRUE(late["failures"].empty()) << late;
  EXPECT_TRUE(fs::is_empty(runs));

  test::RunOptions as_user;
  as_user.user = user_;
  Outcome listed =
      test::Run({test::Program("taskcell"), "ps", "--json", "--home", path_ + "/home"}, as_user);
  ASSERT_EQ(listed.status, 0) << listed.err;
  const Json tasks = Json::parse(listed.out);
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0]["state"], "interrupted");
  EXPECT_EQ(tasks[0]["agent"], "a1");
  Outcome shown =
      test::Run({test::Program("taskcell"), "show", tasks[0]["id"].get<std::string>().substr(0, 8),
                 "--json", "--home", path_ + "/home"},
                as_user);
  ASSERT_EQ(shown.status, 0) << shown.err;
  EXPECT_EQ(Json::parse(shown.out)["runs"][0]["id"], run_id);
}

// Nothing that a task writes reaches a disk: not the home, not what the engine keeps, no log.
TEST_F(TaskTest, WhatATaskWritesIsNowhereAfterwards) {
  std::ifstream random("/dev/urandom", std::ios::binary);
  std::string canary = "canary-";
  for (int i = 0; i < 32; ++i)
    canary += "0123456789abcdef"[static_cast<unsigned char>(random.get()) % 16];
  const Json scenario = {{"steps",
                          {{{"do", "write"}, {"path", "/workspace/canary"}, {"content", canary}},
                           {{"do", "write"}, {"path", "/tmp/canary"}, {"content", canary}},
                           {{"do", "read"}, {"path", "/workspace/canary"}},
                           {{"do", "read"}, {"path", "/tmp/canary"}}}},
                         {"reply", "{2} {3}"}};
  gateway::ProviderProcess provider = MakeProvider(scenario);
  ASSERT_TRUE(provider.IsUp());
  Outcome run = RunTask(provider.Url("/v1"), {});
  ASSERT_EQ(run.out, Text(canary, " ", canary, "\n")) << run.err;
  std::vector<std::string> places = {path_ + "/home"};
  if (!socket_.empty()) {
    places.emplace_back("/var/lib/taskcell-test/docker");
    places.push_back(fs::path(socket_).parent_path().string());
  }
  auto holding = [&] {
    std::vector<std::string> argv = {"grep", "-rlaFD", "skip", "--", canary};
    argv.insert(argv.end(), places.begin(), places.end());
    return test::Run(argv).out;
  };
  EXPECT_EQ(holding(), "");
  Put("control", canary);
  EXPECT_EQ(holding(), path_ + "/home/control\n") << "else this search finds nothing";
}

TEST_F(TaskTest, DoctorSaysOfAHomeWhatItsTasksMeet) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  GiveHomeToUser();
  test::RunOptions as_user;
  as_user.user = user_;
  as_user.environment = {Text("OPENAI_API_KEY=", kKey), "OPENAI_BASE_URL=" + provider.Url("/v1"),
                         "DOCKER_HOST=unix://" + socket_};
  const std::vector<std::string> doctor = {Program("taskcell"), "doctor", "--json", "--home",
                                           path_ + "/home"};
  Outcome looked = test::Run(doctor, as_user);
  EXPECT_EQ(looked.status, 0) << looked.out << looked.err;
  const Json report = Json::parse(looked.out);
  EXPECT_EQ(report["refused"], false);
  std::map<std::string, std::string> states;
  for (const Json& row : report["rows"]) states[row["id"]] = row["state"];
  for (const char* id : {"configuration", "engine", "limits", "agent a1", "account openai-env"})
    EXPECT_EQ(states[id], "ok") << id << looked.out;
  EXPECT_EQ(looked.out.find(kKey), std::string::npos);
  EXPECT_TRUE(provider.Log().empty()) << "the provider is not asked";
  Agent(30000, "[taskcell.limits]\npids = 60000\n");
  GiveHomeToUser();
  looked = test::Run(doctor, as_user);
  EXPECT_EQ(looked.status, 1) << looked.out;
  EXPECT_EQ(RunClient(provider.Url("/v1"), {}).status, 3) << "control: the task is refused as well";
}

TEST_F(TaskTest, StepLimitEndsTheTask) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  Agent(30000, "[taskcell.limits]\nmax_turns = 2\n");
  Outcome run = RunTask(provider.Url("/v1"), {"--json"});
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["code"], "step_limit") << run.out;
  EXPECT_EQ(run.out.find(value_), std::string::npos);
}

TEST_F(TaskTest, RefusalWritesOneAuditLineAndNothingElse) {
  gateway::ProviderProcess provider = MakeProvider(Steps());
  ASSERT_TRUE(provider.IsUp());
  Outcome run = RunTask(provider.Url("/v1"), {}, {}, "");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("no_account: Task sandbox unavailable (no_account): "), std::string::npos)
      << run.err;
  for (const char* name : {"sandbox", "receipts.jsonl"})
    EXPECT_FALSE(fs::exists(path_ + "/home/" + name)) << name;
  const Json line = Json::parse(ReadText(path_ + "/home/security_audit.jsonl"));
  EXPECT_EQ(line["event_type"], "task_sandbox_unavailable");
  EXPECT_EQ(line["details"]["reason"], "no_account");
  EXPECT_EQ(line["details"]["runtime"], "openai_compat");
}

}  // namespace
}  // namespace taskcell::test

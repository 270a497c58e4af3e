// `taskcell run` from end to end: a real engine, the real cell, our own loop in it, and a provider
// on loopback that drives the loop. Compiled once for each engine.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "launcher/base/text.h"
#include "tests/support/engine_proxy.h"
#include "tests/support/fixture.h"

namespace taskcell {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kKey = "sk-the-one-real-credential-0123456789";

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The provider of tests/support on a port of its own; ended with the object.
class Provider {
 public:
  Provider(const std::string& directory, const Json& scenario) {
    const std::string file = directory + "/scenario.json";
    const std::string port_file = directory + "/port";
    std::ofstream(file) << scenario.dump();
    const std::vector<std::string> words = {
        "python3", PROVIDER_PATH, "--key",   std::string(kKey), "--scenario",
        file,      "--port-file", port_file, "--lifetime",      "110"};
    std::vector<char*> argv;
    for (const std::string& word : words)
      argv.push_back(const_cast<char*>(word.c_str()));  // NOLINT: execvp's signature
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      if (::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    for (int tries = 0; tries < 300 && port_.empty(); ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      port_ = Trim(ReadText(port_file));
    }
  }
  ~Provider() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Provider(const Provider&) = delete;
  Provider& operator=(const Provider&) = delete;

  bool answers() const { return !port_.empty(); }
  std::string Url(std::string_view mode = "") const {
    return Text("http://127.0.0.1:", port_, mode.empty() ? "" : "/mode/", mode, "/v1");
  }

 private:
  pid_t pid_ = -1;
  std::string port_;
};

class TaskTest : public testing::Test {
 protected:
  void SetUp() override {
    user_ = test::TestUser();
    TASKCELL_REQUIRE(user_.has_value(), "needs the user taskcell-test (fixture.sh up)");
    TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become the test user");
    ASSERT_NE(::mkdtemp(path_.data()), nullptr);
    ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
    const bool docker = std::string_view(TASK_ENGINE) == "docker";
    if (docker) {
      socket_ = test::DockerSocket();
      TASKCELL_REQUIRE(!socket_.empty(), "needs a Docker engine (fixture.sh engine-up)");
      image_ = Text("taskcell-task-test:", ::getpid());
      auto made = test::Run({"python3", MAKE_IMAGE_PATH, socket_, image_,
                             R"({"config":{},"files":{"/etc/empty":{"text":""}}})"});
      ASSERT_EQ(made.status, 0) << made.err;
    }
    Put("config.toml", Text("[taskcell]\nengine = \"", TASK_ENGINE, "\"\n[container.sandbox]\n",
                            docker ? Text("image = \"", image_, "\"\n") : "",
                            "memory_bytes = 134217728\ntmp_bytes = 16777216\n"
                            "workspace_bytes = 16777216\npids = 40\ncpu_millis = 700\n"));
    Agent(30000);
    // A value that is nowhere but in the agent directory of this home.
    value_ = Text("value-", std::chrono::steady_clock::now().time_since_epoch().count());
    Put("agents/a1/wiki/value.txt", value_);
    Put("agents/a1/SOUL.md", "Be brief.");
  }

  void TearDown() override {
    if (path_.ends_with("XXXXXX")) return;
    const std::string runs = path_ + "/home/sandbox/runs";
    EXPECT_TRUE(!fs::exists(runs) || fs::is_empty(runs)) << "a run directory was left";
    if (!image_.empty())
      (void)test::ForwardToEngine(socket_, {"DELETE", "/images/" + image_ + "?force=1", ""});
    fs::remove_all(path_);
  }

  void Put(const std::string& name, std::string_view content) const {
    const fs::path file = fs::path(path_) / "home" / name;
    fs::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }
  void Agent(uint64_t timeout_ms, std::string_view more = "") const {
    Put("agents/a1/agent.toml",
        Text("[agent]\nname = \"a1\"\n[runtime]\nprovider = \"openai_compat\"\n",
             "[model]\npreferred = \"openai/test-model\"\n[container]\nsandbox_enabled = true\n",
             "network_access = true\ntimeout_ms = ", timeout_ms, "\n", more));
  }
  // Runs the client as the test user, with `before` in front of its command line.
  test::Outcome RunClient(const std::string& url, std::vector<std::string> options,
                          std::vector<std::string> before = {}, std::string_view key = kKey) const {
    auto owned = test::Run({"chown", "-R", Text(user_->uid, ":", user_->gid), path_ + "/home"});
    EXPECT_EQ(owned.status, 0) << owned.err;
    EXPECT_EQ(::chmod((path_ + "/home").c_str(), 0700), 0);
    std::vector<std::string> argv = std::move(before);
    for (const std::string& word :
         {test::Program("taskcell"), std::string("run"), std::string("a1"),
          std::string("Read the value."), std::string("--home"), path_ + "/home"})
      argv.push_back(word);
    argv.insert(argv.end(), options.begin(), options.end());
    test::RunOptions run;
    run.user = user_;
    run.environment = {Text("OPENAI_API_KEY=", key), "OPENAI_BASE_URL=" + url,
                       "DOCKER_HOST=unix://" + socket_};
    run.timeout_ms = 100000;
    return test::Run(argv, run);
  }
  Json Steps() const {
    return {{"steps",
             {{{"do", "write"}, {"path", "/workspace/note.txt"}, {"content", "noted"}},
              {{"do", "read"}, {"path", "/workspace/note.txt"}},
              {{"do", "read"}, {"path", "/agent/wiki/value.txt"}}}},
            {"reply", "{1} and {last}"}};
  }

  std::optional<test::User> user_;
  std::string path_ = "/tmp/taskcell-task-XXXXXX";
  std::string socket_;
  std::string image_;
  std::string value_;
};

TEST_F(TaskTest, ReplyHoldsWhatOnlyAToolCallInTheCellCouldRead) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  test::Outcome run = RunClient(provider.Url(), {});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, Text("noted and ", value_, "\n")) << run.err;
}

TEST_F(TaskTest, ReceiptShowsAskedAndSeenAndNoSecret) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  test::Outcome run = RunClient(provider.Url(), {"--json"});
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

TEST_F(TaskTest, RejectedCredentialIsNamedAndNothingIsPrinted) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  test::Outcome run = RunClient(provider.Url(), {}, {}, "sk-a-wrong-credential-0000000");
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("auth_failed: authentication failed: the openai-compat provider rejected "
                         "the credential of account `openai-env`"),
            std::string::npos)
      << run.err;
}

TEST_F(TaskTest, ProviderFailuresHaveTheirCodes) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  for (const auto& [mode, code] : std::initializer_list<std::pair<std::string, std::string>>{
           {"429", "rate_limited"},
           {"402", "rate_limited"},
           {"500", "provider_unavailable"},
           {"garbage", "provider_unavailable"},
           {"echo-body", "transport_failed"}}) {
    fs::remove(path_ + "/home/taskcell.db");  // the account is not to be held to the last mode
    test::Outcome run = RunClient(provider.Url(mode), {"--json"});
    EXPECT_EQ(run.status, 1) << mode << run.err;
    const Json answer = Json::parse(run.out);
    EXPECT_EQ(answer["code"], code) << mode << ": " << run.out;
    EXPECT_TRUE(answer["reply"].is_null());
    EXPECT_EQ(run.out.find(kKey), std::string::npos) << mode;
  }
}

TEST_F(TaskTest, TheNextAccountIsTriedAndTheRefusedOneRests) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  std::ofstream(path_ + "/home/config.toml", std::ios::app)
      << "[[accounts]]\nid = \"dead\"\nprovider = \"openai\"\npriority = 1\n"
         "api_key = \"secret://env/HOME\"\n"
         "[[accounts]]\nid = \"live\"\nprovider = \"openai\"\npriority = 2\n"
         "api_key = \"secret://env/OPENAI_API_KEY\"\n";
  test::Outcome first = RunClient(provider.Url(), {"--json"});
  ASSERT_EQ(first.status, 0) << first.out << first.err;
  const Json answer = Json::parse(first.out);
  EXPECT_EQ(answer["receipt"]["account"], "live");
  EXPECT_EQ(answer["reply"], Text("noted and ", value_));
  EXPECT_NE(first.out.find("account `dead`: auth_failed; account `live` is tried next"),
            std::string::npos)
      << first.out;
  const std::string receipts = path_ + "/home/sandbox/receipts";
  auto count = [&] { return std::distance(fs::directory_iterator(receipts), {}); };
  EXPECT_EQ(count(), 2);
  test::Outcome second = RunClient(provider.Url(), {"--json"});
  ASSERT_EQ(second.status, 0) << second.out;
  EXPECT_EQ(count(), 3) << "the refused account was tried again";
}

TEST_F(TaskTest, ProgramThatIsNotThereIsInvalidConfigAndNotAMissingReply) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  Put("agents/a1/agent.toml",
      "[agent]\nname = \"a1\"\n[model]\npreferred = \"claude-sonnet-4-5\"\n[container]\n"
      "sandbox_enabled = true\nnetwork_access = true\ntimeout_ms = 30000\n");
  std::ofstream(path_ + "/home/config.toml", std::ios::app)
      << "[container.sandbox.executables]\nclaude = \"/usr/bin/no-such-claude\"\n"
         "[[accounts]]\nid = \"mine\"\napi_key = \"secret://env/OPENAI_API_KEY\"\n";
  test::Outcome run = RunClient(provider.Url(), {"--json"});
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
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  Agent(4000);
  const auto begun = std::chrono::steady_clock::now();
  test::Outcome run = RunClient(provider.Url("hang"), {});
  EXPECT_EQ(run.status, 124) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("timeout: the sandbox task timed out after 4 s"), std::string::npos)
      << run.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

TEST_F(TaskTest, SignalCancelsTheTaskCleanly) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  for (const char* signal : {"INT", "TERM"}) {
    test::Outcome run =
        RunClient(provider.Url("hang"), {}, {"timeout", "--preserve-status", "-s", signal, "4"});
    EXPECT_EQ(run.status, 130) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err.find("stopped: the sandbox run was stopped"), std::string::npos) << run.err;
  }
}

TEST_F(TaskTest, TaskOfAKilledClientIsInterruptedAndWhatItLeftIsSwept) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  auto sweep = [&](std::time_t now) {
    test::RunOptions as_user;
    as_user.user = user_;
    as_user.environment = {"DOCKER_HOST=unix://" + socket_};
    as_user.timeout_ms = 60000;
    test::Outcome swept = test::Run({test::Program("taskcell-casedriver"), "sweep", "--home",
                                     path_ + "/home", "--now", std::to_string(now)},
                                    as_user);
    EXPECT_EQ(swept.status, 0) << swept.out << swept.err;
    return Json::parse(swept.out);
  };
  test::Outcome run = RunClient(provider.Url("hang"), {}, {"timeout", "-s", "KILL", "5"});
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
  test::Outcome listed =
      test::Run({test::Program("taskcell"), "ps", "--json", "--home", path_ + "/home"}, as_user);
  ASSERT_EQ(listed.status, 0) << listed.err;
  const Json tasks = Json::parse(listed.out);
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(tasks[0]["state"], "interrupted");
  EXPECT_EQ(tasks[0]["agent"], "a1");
  test::Outcome shown =
      test::Run({test::Program("taskcell"), "show", tasks[0]["id"].get<std::string>().substr(0, 8),
                 "--json", "--home", path_ + "/home"},
                as_user);
  ASSERT_EQ(shown.status, 0) << shown.err;
  EXPECT_EQ(Json::parse(shown.out)["runs"][0]["id"], run_id);
}

TEST_F(TaskTest, StepLimitEndsTheTask) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  Agent(30000, "[taskcell.limits]\nmax_turns = 2\n");
  test::Outcome run = RunClient(provider.Url(), {"--json"});
  const Json answer = Json::parse(run.out);
  EXPECT_EQ(answer["code"], "step_limit") << run.out;
  EXPECT_EQ(run.out.find(value_), std::string::npos);
}

TEST_F(TaskTest, RefusalWritesOneAuditLineAndNothingElse) {
  Provider provider(path_, Steps());
  ASSERT_TRUE(provider.answers());
  test::Outcome run = RunClient(provider.Url(), {}, {}, "");
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("no_account: Task sandbox unavailable (no_account): "), std::string::npos)
      << run.err;
  EXPECT_FALSE(fs::exists(path_ + "/home/sandbox"));
  const Json line = Json::parse(ReadText(path_ + "/home/security_audit.jsonl"));
  EXPECT_EQ(line["event_type"], "task_sandbox_unavailable");
  EXPECT_EQ(line["details"]["reason"], "no_account");
  EXPECT_EQ(line["details"]["runtime"], "openai_compat");
}

}  // namespace
}  // namespace taskcell

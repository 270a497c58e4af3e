#include "tests/engine/task_fixture.h"

#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "tests/engine/task_engine.h"
#include "tests/support/engine_proxy.h"
#include "tests/support/own_network.h"

namespace taskcell::test {

namespace fs = std::filesystem;

void TaskFixture::SetUp() {
  user_ = TestUser();
  TASKCELL_REQUIRE(user_.has_value(), "needs the user taskcell-test (fixture.sh up)");
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become the test user");
  if (needs_own_network()) TASKCELL_ENTER_OWN_NETWORK();
  ASSERT_NE(::mkdtemp(path_.data()), nullptr);
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
  if (OnDocker()) {
    socket_ = DockerSocket();
    TASKCELL_REQUIRE(!socket_.empty(), "needs a Docker engine (fixture.sh engine-up)");
    image_ = Text("taskcell-task-test:", ::getpid());
    auto made = test::Run({"python3", MAKE_IMAGE_PATH, socket_, image_,
                           R"({"config":{},"files":{"/etc/empty":{"text":""}}})"});
    ASSERT_EQ(made.status, 0) << made.err;
  }
  Put("config.toml", Text("[taskcell]\nengine = \"", kTaskEngine, "\"\n[container.sandbox]\n",
                          OnDocker() ? Text("image = \"", image_, "\"\n") : "",
                          "memory_bytes = 134217728\ntmp_bytes = 16777216\n"
                          "workspace_bytes = 16777216\npids = 40\ncpu_millis = 700\n"));
  Agent(30000);
}

void TaskFixture::TearDown() {
  if (path_.ends_with("XXXXXX")) return;
  const std::string runs = path_ + "/home/sandbox/runs";
  EXPECT_TRUE(!fs::exists(runs) || fs::is_empty(runs)) << "a run directory was left";
  if (!image_.empty())
    (void)ForwardToEngine(socket_, {"DELETE", "/images/" + image_ + "?force=1", ""});
  fs::remove_all(path_);
}

void TaskFixture::Put(const std::string& name, std::string_view content) const {
  const fs::path file = fs::path(path_) / "home" / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

void TaskFixture::Agent(uint64_t timeout_ms, std::string_view more) const {
  Put("agents/a1/agent.toml",
      Text("[agent]\nname = \"a1\"\n[runtime]\nprovider = \"openai_compat\"\n",
           "[model]\npreferred = \"openai/test-model\"\n[container]\nsandbox_enabled = true\n",
           "network_access = true\ntimeout_ms = ", timeout_ms, "\n", more));
}

std::string TaskFixture::At(std::string_view name) const { return Text(path_, "/", name); }

std::string TaskFixture::AgentFile(std::string_view name) const {
  return Text(path_, "/home/agents/a1/", name);
}

gateway::ProviderProcess TaskFixture::MakeProvider(const Json& scenario) const {
  const std::string file = At("scenario.json");
  std::ofstream(file) << scenario.dump();
  return {std::string(kKey), file};
}

void TaskFixture::GiveHomeToUser() const {
  auto owned = test::Run({"chown", "-hR", Text(user_->uid, ":", user_->gid), path_ + "/home"});
  EXPECT_EQ(owned.status, 0) << owned.err;
  EXPECT_EQ(::chmod((path_ + "/home").c_str(), 0700), 0);
}

Outcome TaskFixture::RunClient(const std::string& url, std::vector<std::string> options,
                               std::vector<std::string> before, std::string_view key) const {
  std::vector<std::string> argv = std::move(before);
  for (const std::string& word :
       {Program("taskcell"), std::string("run"), std::string("a1"), std::string("Read the value."),
        std::string("--home"), path_ + "/home"})
    argv.push_back(word);
  argv.insert(argv.end(), options.begin(), options.end());
  RunOptions run;
  run.user = user_;
  run.environment = {Text("OPENAI_API_KEY=", key), "OPENAI_BASE_URL=" + url,
                     "DOCKER_HOST=unix://" + socket_};
  run.timeout_ms = 100000;
  return test::Run(argv, run);
}

std::vector<std::string> TaskFixture::ShellCommand() const {
  return {"/usr/bin/env",
          "DOCKER_HOST=unix://" + socket_,
          "TERM=xterm",
          Text("OPENAI_API_KEY=", kKey),
          Program("taskcell"),
          "shell",
          "a1",
          "--home",
          At("home")};
}

std::function<void()> TaskFixture::BecomeUser() const {
  return [user = *user_] {
    EnterDelegatedCgroup(user.uid);
    if (::setgroups(0, nullptr) != 0 || ::setresgid(user.gid, user.gid, user.gid) != 0 ||
        ::setresuid(user.uid, user.uid, user.uid) != 0)
      ::_exit(250);
  };
}

}  // namespace taskcell::test

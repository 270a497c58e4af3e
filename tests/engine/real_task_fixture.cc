#include "tests/engine/real_task_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/text.h"
#include "tests/engine/task_engine.h"
#include "tests/support/own_network.h"

namespace taskcell::test {

namespace fs = std::filesystem;

std::string RealTaskFixture::Random(std::string_view prefix) {
  std::ifstream random("/dev/urandom", std::ios::binary);
  std::string text(prefix);
  for (int i = 0; i < 32; ++i) {
    text += "0123456789abcdef"[static_cast<unsigned char>(random.get()) % 16];
  }
  return text;
}

void RealTaskFixture::SetUp() {
  user_ = TestUser();
  TASKCELL_REQUIRE(user_.has_value(), "needs the user taskcell-test (fixture.sh up)");
  TASKCELL_REQUIRE(::geteuid() == 0, "needs root, to become the test user and to look into cells");
  TASKCELL_ENTER_OWN_NETWORK();
  TASKCELL_REQUIRE(fs::exists(Text(kState, "/cli-root/usr/bin/claude")),
                   "needs claude and codex (install_clis.sh, make_cli_image.sh)");
  if (OnDocker()) {
    socket_ = DockerSocket();
    TASKCELL_REQUIRE(!socket_.empty(), "needs a Docker engine (fixture.sh engine-up)");
    Outcome image = test::Run(
        {"curl", "-fsS", "--unix-socket", socket_, Text("http://engine/images/", kImage, "/json")});
    TASKCELL_REQUIRE(image.status == 0, "needs the image of make_cli_image.sh");
  }
  ASSERT_NE(::mkdtemp(path_.data()), nullptr);
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
}

void RealTaskFixture::TearDown() {
  if (path_.ends_with("XXXXXX")) return;
  const std::string runs = path_ + "/home/sandbox/runs";
  EXPECT_TRUE(!fs::exists(runs) || fs::is_empty(runs)) << "a run directory was left";
  fs::remove_all(path_);
}

void RealTaskFixture::MakeHome(const RealAgent& agent) {
  key_ = Random(agent.key_prefix);
  std::string root = OnDocker() ? "" : Text("root = \"", kState, "/cli-root\"\n");
  std::string ca_file = agent.ca_file.empty() ? "" : Text("ca_file = \"", agent.ca_file, "\"\n");
  std::string image = OnDocker() ? Text("image = \"", kImage, "\"\n") : "";
  std::string secret = agent.oauth ? "type = \"oauth\"\noauth_token = \"secret://env/REAL_TOKEN\"\n"
                                   : Text("api_key = \"", key_, "\"\n");
  (void)Put(
      "config.toml",
      Text("[taskcell]\nengine = \"", kTaskEngine, "\"\n", root, ca_file, "[container.sandbox]\n",
           image, "memory_bytes = 2147483648\n[[accounts]]\nid = \"real\"\nprovider = \"",
           agent.account_provider, "\"\n", secret));
  (void)Put("agents/a1/agent.toml",
            Text("[agent]\nname = \"a1\"\n[runtime]\nprovider = \"", agent.runtime,
                 "\"\n[model]\npreferred = \"", agent.model,
                 "\"\n[container]\nsandbox_enabled = true\nnetwork_access = true\n"
                 "timeout_ms = 90000\n"));
  (void)Put("agents/a1/SOUL.md", "Be brief.");
}

std::string RealTaskFixture::Put(const std::string& name, std::string_view content) const {
  const fs::path file = fs::path(path_) / "home" / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
  // Who may read config.toml may read the key in it.
  if (file.filename() == "config.toml") fs::permissions(file, fs::perms(0600));
  return file;
}

Outcome RealTaskFixture::RunTask(const gateway::ProviderProcess& provider) const {
  Outcome owned = test::Run({"chown", "-R", Text(user_->uid, ":", user_->gid), path_ + "/home"});
  EXPECT_EQ(owned.status, 0) << owned.err;
  EXPECT_EQ(::chmod((path_ + "/home").c_str(), 0700), 0);
  RunOptions run;
  run.user = user_;
  run.environment = {"ANTHROPIC_BASE_URL=" + provider.Url(),
                     "OPENAI_BASE_URL=" + provider.Url("/v1"), "DOCKER_HOST=unix://" + socket_,
                     "REAL_TOKEN=" + key_};
  run.timeout_ms = 100000;
  run.in_child = [uid = user_->uid] { EnterDelegatedCgroup(uid); };
  return test::Run({Program("taskcell"), "run", "a1", Text("Copy the value. ", kPromptMark),
                    "--home", path_ + "/home", "--json"},
                   run);
}

}  // namespace taskcell::test

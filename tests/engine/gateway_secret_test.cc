// Where a credential is in memory of a gateway: while a task of it runs, after it, and in what the
// kernel writes when the gateway is ended with a core dump.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>

#include "gateway/config/secret.h"
#include "launcher/base/text.h"
#include "tests/engine/gateway_fixture.h"
#include "tests/support/memory_search.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

class GatewaySecretTest : public GatewayFixture {
 protected:
  static constexpr std::string_view kSleeps = "600.4711";

  // A gateway whose account's secret stands encrypted in config.toml, and which may leave a core
  // dump of any size in At("cores").
  void Start(const std::string& provider_url) {
    const std::string keyfile(gateway::kKeyBytes, 'k');
    Put(".keyfile", keyfile);
    Put("config.toml", Text(ReadText(At("home/config.toml")),
                            "[[accounts]]\nid = \"a\"\nprovider = \"openai\"\napi_key_enc = \"",
                            gateway::Encrypt(kKey, keyfile, "nonce-of-12-").value(), "\"\n"));
    fs::permissions(At("home/config.toml"), fs::perms(0600));
    GiveHomeToUser();
    fs::create_directory(At("cores"));
    fs::permissions(At("cores"), fs::perms::all);
    RunOptions run = AllowingCores();
    run.environment = {"OPENAI_BASE_URL=" + provider_url};
    gateway_ = std::make_unique<Background>(GatewayCommand(), run, At("gateway.out"));
    AwaitService([this] { return gateway_->Wait({}).has_value(); });
  }

  // As the test user, in a directory that takes core dumps.
  RunOptions AllowingCores() const {
    RunOptions run;
    run.user = user_;
    run.directory = At("cores");
    run.in_child = [] {
      const struct rlimit any = {RLIM_INFINITY, RLIM_INFINITY};
      if (::setrlimit(RLIMIT_CORE, &any) != 0) ::_exit(90);
    };
    return run;
  }

  std::optional<pid_t> Tool() const { return FindDescendant(gateway_->pid(), kSleeps); }
};

TEST_F(GatewaySecretTest, InLockedPagesAloneWhileATaskRunsAndNowhereAfterIt) {
  const gateway::ProviderProcess provider = MakeProvider(
      {{"steps", {{{"do", "shell"}, {"command", Text("sleep ", kSleeps)}}}}, {"reply", "done"}});
  ASSERT_TRUE(provider.IsUp());
  ASSERT_NO_FATAL_FAILURE(Start(provider.Url("/v1")));
  const std::string task = Submit("Sleep.");
  ASSERT_TRUE(WaitFor([&] { return Tool().has_value(); })) << Show(task).dump();
  for (pid_t pid : WithDescendants(gateway_->pid())) {
    const Places places = SearchMemory(pid, kKey);
    const std::string name = ReadText(Text("/proc/", pid, "/comm"));
    EXPECT_GT(places.bytes, 0U) << name;
    EXPECT_EQ(places.elsewhere, std::vector<std::string>()) << name;
    EXPECT_EQ(places.guarded.empty(), pid != gateway_->pid()) << name;
  }
  ASSERT_TRUE(Tool().has_value()) << "control: the task ran all the while";
  ASSERT_EQ(::kill(*Tool(), SIGTERM), 0);
  ASSERT_TRUE(WaitFor([this] { return IsIdle(); }));
  EXPECT_EQ(StateOf(task), "done") << Show(task).dump();
  ASSERT_EQ(provider.Log().size(), 2U);
  EXPECT_TRUE(provider.Log()[1].authorized) << "control: it was used until the end";
  const Places after = SearchMemory(gateway_->pid(), kKey);
  EXPECT_GT(after.bytes, 0U);
  EXPECT_EQ(after.elsewhere, std::vector<std::string>());
  EXPECT_EQ(after.guarded, std::vector<std::string>());
  EXPECT_EQ(StopGateway(), 0);
}

TEST_F(GatewaySecretTest, AGatewayThatCrashesWhileATaskRunsLeavesNoCore) {
  const std::string pattern = ReadText("/proc/sys/kernel/core_pattern");
  TASKCELL_REQUIRE(pattern.find_first_of("|/%") == std::string::npos,
                   Text("cores go elsewhere here: kernel.core_pattern is ", Trim(pattern)));
  const gateway::ProviderProcess provider = MakeProvider(
      {{"steps", {{{"do", "shell"}, {"command", Text("sleep ", kSleeps)}}}}, {"reply", "done"}});
  ASSERT_TRUE(provider.IsUp());
  ASSERT_NO_FATAL_FAILURE(Start(provider.Url("/v1")));
  (void)Submit("Sleep.");
  ASSERT_TRUE(WaitFor([&] { return Tool().has_value(); }));
  EXPECT_FALSE(SearchMemory(gateway_->pid(), kKey).guarded.empty()) << "control: it has one";
  gateway_->Signal(SIGABRT);
  EXPECT_EQ(gateway_->Wait(std::chrono::minutes(1)), 128 + SIGABRT);
  EXPECT_TRUE(fs::is_empty(At("cores")));
  const Outcome other = test::Run({"sh", "-c", "kill -ABRT $$"}, AllowingCores());
  EXPECT_EQ(other.status, 128 + SIGABRT);
  EXPECT_FALSE(fs::is_empty(At("cores"))) << "control: another program leaves one there";
  EXPECT_TRUE(SweepLater()["failures"].empty());
  ExpectTidy();
}

}  // namespace
}  // namespace taskcell::test

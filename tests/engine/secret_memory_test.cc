// Where the credential of a task is in memory while the AI works: the whole memory of the program
// that runs it, and of all it has started, is searched.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "gateway/config/secret.h"
#include "launcher/base/text.h"
#include "tests/engine/task_fixture.h"
#include "tests/support/background.h"
#include "tests/support/memory_search.h"
#include "tests/support/wait_for.h"

namespace taskcell::test {
namespace {

class SecretMemoryTest : public TaskFixture {
 protected:
  static constexpr std::string_view kSleeps = "24.4711";

  // An account of the provider's, whose secret is `line` of config.toml.
  void PutAccount(std::string_view line) const {
    Put("config.toml", Text(ReadText(At("home/config.toml")),
                            "[[accounts]]\nid = \"a\"\nprovider = \"openai\"\n", line, "\n"));
    std::filesystem::permissions(At("home/config.toml"), std::filesystem::perms(0600));
  }

  // Runs a task with a tool that sleeps, and searches meanwhile.
  void ExpectItInLockedPagesAlone() const;

  static bool TheToolRuns(pid_t pid) { return FindDescendant(pid, kSleeps).has_value(); }
};

void SecretMemoryTest::ExpectItInLockedPagesAlone() const {
  gateway::ProviderProcess provider = MakeProvider(
      {{"steps", {{{"do", "shell"}, {"command", Text("sleep ", kSleeps)}}}}, {"reply", "x"}});
  ASSERT_TRUE(provider.IsUp());
  GiveHomeToUser();
  RunOptions run;
  run.user = user_;
  run.environment = {"OPENAI_BASE_URL=" + provider.Url("/v1")};
  Background task({Program("taskcell"), "run", "a1", "Sleep.", "--home", path_ + "/home"}, run,
                  At("output"));
  ASSERT_TRUE(WaitFor([&] { return TheToolRuns(task.pid()); })) << ReadText(At("output"));
  ASSERT_EQ(provider.Log().size(), 1U);
  EXPECT_TRUE(provider.Log()[0].authorized) << "control: it was used";

  for (pid_t pid : WithDescendants(task.pid())) {
    const Places places = SearchMemory(pid, kKey);
    const std::string name = ReadText(Text("/proc/", pid, "/comm"));
    EXPECT_GT(places.bytes, 0U) << name;
    EXPECT_EQ(places.elsewhere, std::vector<std::string>()) << name;
    EXPECT_EQ(places.guarded.empty(), pid != task.pid()) << name;
  }
  task.Signal(SIGTERM);
  EXPECT_TRUE(task.Wait(std::chrono::minutes(1)).has_value());
}

TEST_F(SecretMemoryTest, WhileTheAiWorksItStandsInLockedPagesAlone) {
  const std::string keyfile(gateway::kKeyBytes, 'k');
  Put(".keyfile", keyfile);
  PutAccount(
      Text("api_key_enc = \"", gateway::Encrypt(kKey, keyfile, "nonce-of-12-").value(), '"'));
  ExpectItInLockedPagesAlone();
}

}  // namespace
}  // namespace taskcell::test

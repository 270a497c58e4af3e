// The names of a cell's user and group, which git, npm and ssh ask for (getpwuid). Runs on
// each engine.
#include <gtest/gtest.h>

#include <filesystem>

#include "launcher/base/text.h"
#include "tests/engine/small_root_fixture.h"

namespace taskcell::test {
namespace {

namespace fs = std::filesystem;

class UserNameTest : public SmallRootFixture {
 protected:
  // The answer to a task whose tool call runs `command` in the cell.
  Json Answer(const std::string& command) {
    gateway::ProviderProcess provider =
        MakeProvider({{"steps", {{{"do", "shell"}, {"command", command}}}}, {"reply", "{last}"}});
    EXPECT_TRUE(provider.IsUp());
    GiveHomeToUser();
    const Outcome run = RunClient(provider.Url("/v1"), {"--json"});
    EXPECT_EQ(run.status, 0) << run.out << run.err;
    return Json::parse(run.out, nullptr, false);
  }
  // Names by number, and the number and the home by name.
  void ExpectNames() {
    const Json answer = Answer("id -un; id -gn; id -u agent; echo ~agent; id -u; id -un 0 65534");
    ASSERT_TRUE(answer.is_object() && answer["reply"].is_string()) << answer;
    const std::string reply = answer["reply"];
    const std::string uid = Text(answer["receipt"]["cell"]["uid"].get<uint64_t>());
    EXPECT_EQ(reply,
              Text("agent\nagent\n", uid, "\n/tmp/dudu-private/home\n", uid, "\nroot\nnobody"));
    std::size_t mounted = 0;
    for (const Json& mount : answer["receipt"]["cell"]["mounts"]) {
      if (mount["target"] != "/etc/passwd" && mount["target"] != "/etc/group") continue;
      EXPECT_EQ(mount["writable"], false);
      ++mounted;
    }
    EXPECT_EQ(mounted, 2U) << answer["receipt"]["cell"];
  }
};

TEST_F(UserNameTest, ACellsUserAndGroupHaveNamesWhateverTheRootHolds) {
  ASSERT_NO_FATAL_FAILURE(MakeSmallRoot());
  if (!image_.empty()) {
    ASSERT_NO_FATAL_FAILURE(MakeSmallRootImage());
    ExpectNames();
    // Where the image has no such file, the engine makes the place for the mount.
    fs::remove_all(At("root/etc"));
    ASSERT_NO_FATAL_FAILURE(MakeSmallRootImage());
    return ExpectNames();
  }
  ExpectNames();  // the host's programs
  std::string text = ReadText(path_ + "/home/config.toml");
  const std::string engine = "[taskcell]\n";
  text.insert(text.find(engine) + engine.size(), Text("root = \"", At("root"), "\"\n"));
  Put("config.toml", text);
  ExpectNames();
  // The launcher makes nothing in a root that is not its own.
  fs::remove(At("root/etc/passwd"));
  const Json answer = Answer("id -un >/dev/null 2>&1 || echo nameless");
  EXPECT_EQ(answer["reply"], "nameless");
  EXPECT_NE(answer["receipt"]["warnings"].dump().find("has no plain file /etc/passwd"),
            std::string::npos)
      << answer["receipt"]["warnings"];
}

}  // namespace
}  // namespace taskcell::test

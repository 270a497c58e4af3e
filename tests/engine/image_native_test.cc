#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/task_fixture.h"

namespace taskcell::test {
namespace {

using testing::HasSubstr;

// `taskcell image` where cells have the host's programs.
class NativeImageTest : public TaskFixture {
 protected:
  Outcome Client(std::vector<std::string> words) const {
    GiveHomeToUser();
    words.insert(words.begin(), Program("taskcell"));
    words.insert(words.end(), {"--home", path_ + "/home"});
    RunOptions run;
    run.user = user_;
    run.timeout_ms = 100000;
    run.in_child = [uid = user_->uid] { EnterDelegatedCgroup(uid); };
    return test::Run(words, run);
  }
};

TEST_F(NativeImageTest, ThereIsNothingToPull) {
  const Outcome pull = Client({"image", "pull"});
  EXPECT_EQ(pull.status, 1) << pull.out;
  EXPECT_THAT(pull.err, HasSubstr("engine \"native\" has no images"));
  EXPECT_THAT(pull.err, HasSubstr("[taskcell] root"));
}

TEST_F(NativeImageTest, TheProgramsOfTheRootAreStarted) {
  Put("config.toml",
      "[taskcell]\nengine = \"native\"\n[container.sandbox]\nmemory_bytes = 134217728\n"
      "tmp_bytes = 16777216\nworkspace_bytes = 16777216\npids = 40\ncpu_millis = 700\n"
      "[container.sandbox.executables]\nclaude = \"/usr/bin/env\"\ncodex = \"/usr/bin/false\"\n"
      "grok = \"/usr/bin/no-such-program\"\n");
  const Outcome check = Client({"image", "check", "--json"});
  EXPECT_EQ(check.status, 0) << check.out << check.err;
  const Json told = Json::parse(check.out, nullptr, false);
  EXPECT_EQ(told["image"], nullptr);
  for (const Json& program : told["programs"]) {
    if (program["runtime"] == "claude") {
      EXPECT_EQ(program["state"], "runs") << program;
      EXPECT_THAT(program["text"].get<std::string>(), HasSubstr("coreutils"));
    }
    if (program["runtime"] == "grok") {
      EXPECT_EQ(program["state"], "missing") << program;
    }
  }
}

TEST_F(NativeImageTest, AnImageIsRefusedAndTheRootNamed) {
  const Outcome check = Client({"image", "check", "x:1"});
  EXPECT_EQ(check.status, 2) << check.out;
  EXPECT_THAT(check.err, HasSubstr("has no images"));
  const Outcome root = Client({"image", "check"});
  EXPECT_THAT(root.out, HasSubstr("no image is used"));
}

}  // namespace
}  // namespace taskcell::test

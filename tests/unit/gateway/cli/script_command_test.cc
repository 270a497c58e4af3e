#include "gateway/cli/script_command.h"

#include <gtest/gtest.h>

#include "tests/support/temp_directory.h"

namespace taskcell::gateway {
namespace {

TEST(ScriptCommandTest, AProofOfConceptHasTwoMinutesAndAnyOtherScriptTheTimeItAsksFor) {
  test::TempDirectory directory("script");
  directory.Put("script.sh", "true");
  ScriptOptions options;
  options.home = directory.path();
  options.language = "bash";
  options.file = directory.At("script.sh");
  options.timeout_seconds = 7;
  Result<ScriptRequest> request = RequestOf(options);
  ASSERT_TRUE(request.ok()) << request.error().text;
  EXPECT_EQ(request->timeout_ms, 7000U);
  EXPECT_EQ(request->code, "true");
  options.poc = true;
  EXPECT_EQ(RequestOf(options)->timeout_ms, 120'000U);
}

}  // namespace
}  // namespace taskcell::gateway

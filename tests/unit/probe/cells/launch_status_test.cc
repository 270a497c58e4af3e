#include "probe/cells/launch_status.h"

#include <gtest/gtest.h>

namespace taskcell::probe {
namespace {

TEST(LaunchStatusTest, EachEventIsRead) {
  auto made = ParseLaunchStatus(R"({"event":"made","pid":42,"uid_separation":"own"})");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->event, LaunchStatus::Event::kMade);
  EXPECT_EQ(made->pid, 42);
  EXPECT_FALSE(made->keyring_stays);
  EXPECT_TRUE(
      ParseLaunchStatus(R"({"event":"made","pid":42,"keyring":"inherited"})")->keyring_stays);
  auto failed = ParseLaunchStatus(
      R"({"event":"failed","kind":"unsupported","code":"resource_limits_unenforced","text":"no"})");
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->event, LaunchStatus::Event::kFailed);
  EXPECT_EQ(failed->code, "resource_limits_unenforced");
  EXPECT_EQ(failed->text, "no");
  EXPECT_EQ(ParseLaunchStatus(R"({"event":"ended","status":0})")->event,
            LaunchStatus::Event::kEnded);
}

TEST(LaunchStatusTest, AnUnknownCodeIsAFailureToCreate) {
  EXPECT_EQ(ParseLaunchStatus(R"({"event":"failed","code":"new_one","text":""})")->code,
            "container_create_failed");
}

TEST(LaunchStatusTest, AnythingElseIsAViolation) {
  for (const char* line : {"", "{", "[]", "{}", R"({"event":"other"})", R"({"event":"made"})",
                           R"({"event":"made","pid":0})", R"({"event":"made","pid":-1})",
                           R"({"event":"made","pid":4294967296})", R"({"event":"made"} x)"}) {
    auto status = ParseLaunchStatus(line);
    ASSERT_FALSE(status.ok()) << line;
    EXPECT_EQ(status.error().kind, Kind::kViolation);
  }
}

}  // namespace
}  // namespace taskcell::probe

#include "probe/attack/outcome.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace taskcell::attack {
namespace {

TEST(OutcomeTest, ALineComesBack) {
  for (int32_t result : {0, EPERM, -SIGKILL, kHeldBack}) {
    std::string line = OutcomeLine("uid-0", {result, "a \"detail\"\n"});
    ASSERT_EQ(line.back(), '\n');
    ASSERT_EQ(line.find('\n'), line.size() - 1);
    Result<Attempted> back =
        ParseOutcome(std::string_view(line).substr(0, line.size() - 1), "uid-0");
    ASSERT_TRUE(back.ok()) << back.error().text;
    EXPECT_EQ(back->result, result);
    EXPECT_EQ(back->detail, "a \"detail\"\n");
  }
  EXPECT_EQ(OutcomeLine("uid-0", {EPERM, ""}),
            "{\"payload\":\"uid-0\",\"result\":1,\"name\":\"EPERM\",\"detail\":\"\"}\n");
}

// The cell is hostile: a line that is not whole must never read as "got through", nor as refused.
TEST(OutcomeTest, AnythingElseIsAViolation) {
  for (const char* line :
       {"", "{", "[]", "\"x\"", "{\"payload\":\"uid-0\"}",
        "{\"payload\":\"uid-0\",\"result\":\"1\"}", "{\"payload\":\"uid-0\",\"result\":null}",
        "{\"payload\":\"uid-0\",\"result\":1.5}", "{\"payload\":\"uid-0\",\"result\":99999999999}",
        "{\"payload\":\"gid-0\",\"result\":1}", "{\"result\":1}",
        "{\"payload\":\"uid-0\",\"result\":1} x"}) {
    Result<Attempted> parsed = ParseOutcome(line, "uid-0");
    ASSERT_FALSE(parsed.ok()) << line;
    EXPECT_EQ(parsed.error().kind, Kind::kViolation) << line;
  }
}

}  // namespace
}  // namespace taskcell::attack

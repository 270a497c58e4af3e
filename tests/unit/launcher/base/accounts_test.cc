#include "launcher/base/accounts.h"

#include <gtest/gtest.h>

namespace taskcell {
namespace {

constexpr std::string_view kPasswd = "root:x:0:0::/:/bin/sh\na:x:1500:5::/:/bin/sh\nb:x:1500:5\n";

TEST(LoginNameTest, TheFirstNameOfTheUid) {
  EXPECT_EQ(LoginName(kPasswd, 1500), "a");
  EXPECT_EQ(LoginName(kPasswd, 150), "");
}

TEST(UserIdTest, OfTheWholeNameAlone) {
  EXPECT_EQ(UserId(kPasswd, "b"), 1500U);
  EXPECT_FALSE(UserId(kPasswd, "roo").has_value());
  EXPECT_FALSE(UserId("::7::\nx:x:4294967296:1\n", "").has_value());
  EXPECT_FALSE(UserId("x:x:4294967296:1\n", "x").has_value());
}

}  // namespace
}  // namespace taskcell

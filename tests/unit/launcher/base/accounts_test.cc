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

TEST(LoginGroupTest, IsThatOfTheFirstLineOfTheUser) {
  EXPECT_EQ(LoginGroup("root:x:0:0::/:/x\na:x:1500:50::/:/x\nb:x:1500:51::/:/x\n", 1500), 50U);
  EXPECT_EQ(LoginGroup("a:x:1500:50::/:/x\n", 1501), std::nullopt);
  EXPECT_EQ(LoginGroup("a:x:1500\n", 1500), std::nullopt);
  EXPECT_EQ(LoginGroup("a:x:1500:4294967296::/:/x\n", 1500), std::nullopt);
  EXPECT_EQ(LoginGroup("a:x:1500:x::/:/x\n", 1500), std::nullopt);
}

TEST(OwnGroupTest, OnlyTheLoginGroupThatNobodyElseIsIn) {
  const std::string_view passwd =
      "root:x:0:0::/:\na:x:1500:1500::/:\nb:x:1501:50::/:\nc:x:1502:50::/:\n";
  EXPECT_EQ(OwnGroup(passwd, "a:x:1500:\nusers:x:50:\n", 1500), 1500U);
  EXPECT_EQ(OwnGroup(passwd, "a:x:1500:a\n", 1500), 1500U);
  EXPECT_FALSE(OwnGroup(passwd, "a:x:1500:b\n", 1500)) << "b is a member";
  EXPECT_FALSE(OwnGroup(passwd, "a:x:1500:\nagain:x:1500:b\n", 1500)) << "by another name";
  EXPECT_FALSE(OwnGroup(passwd, "users:x:50:\n", 1501)) << "it is the login group of c too";
  EXPECT_FALSE(OwnGroup(passwd, "", 1500)) << "such a group is not known";
  EXPECT_FALSE(OwnGroup(passwd, "a:x:1500:\n", 1599)) << "such a user is not known";
}

}  // namespace
}  // namespace taskcell

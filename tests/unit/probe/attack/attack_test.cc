#include "probe/attack/attack.h"

#include <gtest/gtest.h>

namespace taskcell::attack {
namespace {

TEST(ChooseTest, NoNameIsAll) {
  auto chosen = Choose({});
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(chosen->size(), AllPayloads().size());
}

TEST(ChooseTest, TopicsAndNamesAreTakenOnceAndInTheirOrder) {
  auto chosen = Choose({"uid-0", "privilege", "setuid-program"});
  ASSERT_TRUE(chosen.ok());
  ASSERT_GT(chosen->size(), 2U);
  EXPECT_EQ(chosen->front()->name, "setuid-program");
  for (const Payload* payload : chosen.value()) EXPECT_EQ(payload->topic, "privilege");
}

TEST(ChooseTest, AnUnknownNameIsUsage) {
  auto chosen = Choose({"uid-0", "uid-1"});
  ASSERT_FALSE(chosen.ok());
  EXPECT_EQ(chosen.error().kind, Kind::kUsage);
  EXPECT_NE(chosen.error().text.find("'uid-1'"), std::string::npos);
}

}  // namespace
}  // namespace taskcell::attack

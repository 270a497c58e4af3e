#include "probe/engine/answers.h"

#include <gtest/gtest.h>

namespace taskcell::probe {
namespace {

TEST(AnswersTest, WhatIsNotJsonOfTheRightShapeIsAViolation) {
  for (const char* body : {"", "{", "null", "[]", "\"x\"", "{\"Id\":1}", "{\"Id\":\"a/b\"}",
                           "{\"Id\":\"\"}", "\xff\xfe"}) {
    EXPECT_FALSE(ParseCreate(body).ok()) << body;
    EXPECT_FALSE(ParseContainer(body).ok()) << body;
    EXPECT_FALSE(ParseImage(body).ok()) << body;
  }
  EXPECT_FALSE(ParseList("{}").ok());
  EXPECT_TRUE(ParseList("[]").ok());
  EXPECT_EQ(ParseCreate("{}").error().kind, Kind::kViolation);
}

TEST(AnswersTest, AnIdIsTakenUpToItsBound) {
  EXPECT_TRUE(ParseCreate("{\"Id\":\"" + std::string(128, 'a') + "\"}").ok());
  EXPECT_FALSE(ParseCreate("{\"Id\":\"" + std::string(129, 'a') + "\"}").ok());
}

TEST(AnswersTest, DeepNestingIsNoCrash) {
  std::string deep(200000, '[');
  EXPECT_FALSE(ParseInfo(deep).ok());
  EXPECT_FALSE(ParseInfo(deep + std::string(200000, ']')).ok());
}

TEST(AnswersTest, RootlessIsSeenInEitherSpelling) {
  EXPECT_TRUE(ParseInfo(R"({"Rootless":true,"SecurityOptions":["name=seccomp"]})")->rootless);
  EXPECT_TRUE(ParseInfo(R"({"SecurityOptions":["name=rootless"]})")->rootless);
  EXPECT_TRUE(ParseInfo(R"({"SecurityOptions":["name=rootless,x=y"]})")->rootless);
  EXPECT_FALSE(ParseInfo(R"({"SecurityOptions":["name=seccomp,profile=rootless"]})")->rootless);
  EXPECT_FALSE(ParseInfo(R"({"SecurityOptions":null,"Warnings":null})")->rootless);
}

TEST(AnswersTest, AnImageTellsItsVolumesAndTheNamesOfItsEnvironment) {
  auto image = ParseImage(R"({"Id":"sha256:aa","Architecture":"amd64","Config":{"User":"0",
    "Env":["PATH=/bin","LD_PRELOAD=/evil.so","=x","BARE"],"Volumes":{"/data":{},"/v2":{}}}})");
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->environment_names, (std::vector<std::string>{"PATH", "LD_PRELOAD", "BARE"}));
  EXPECT_EQ(image->volumes, (std::vector<std::string>{"/data", "/v2"}));
  EXPECT_TRUE(ParseImage(R"({"Id":"a","Config":null})").ok());
}

TEST(AnswersTest, ANumberThatFitsNoPidIsNone) {
  EXPECT_EQ(ParseContainer(R"({"Id":"a","State":{"Pid":42}})")->pid, 42);
  EXPECT_EQ(ParseContainer(R"({"Id":"a","State":{"Pid":4294967338}})")->pid, 0);
  EXPECT_EQ(ParseContainer(R"({"Id":"a","State":{"Pid":"42"}})")->pid, 0);
  EXPECT_EQ(ParseContainer(R"({"Id":"a","State":[]})")->pid, 0);
}

TEST(AnswersTest, AnErrorMessageIsOnePrintableBoundedLine) {
  EXPECT_EQ(ErrorMessage(R"({"message":"no such\nthing"})"), "no such\\nthing");
  EXPECT_EQ(ErrorMessage(R"({"cause":"improper"})"), "improper");
  EXPECT_EQ(ErrorMessage("plain"), "plain");
  EXPECT_EQ(ErrorMessage(""), "no reason given");
  EXPECT_EQ(ErrorMessage(std::string(5000, 'x')).size(), 300U);
  EXPECT_EQ(ErrorMessage("{\"message\":\"\x1b[2J\"}").find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace taskcell::probe

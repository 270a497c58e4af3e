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

TEST(AnswersTest, PodmanIsToldFromDockerByWhatItIsBuiltWith) {
  EXPECT_TRUE(ParseInfo(R"({"ServerVersion":"4.3.1","BuildahVersion":"1.28.2"})")->podman);
  EXPECT_FALSE(ParseInfo(R"({"ServerVersion":"20.10.24"})")->podman);
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

TEST(AnswersTest, TheLimitsAnEngineReports) {
  auto limits = ParseReportedLimits(R"({"HostConfig":{"Memory":67108864,"MemorySwap":67108865,
    "PidsLimit":64,"NanoCpus":500000000,"Ulimits":[{"Name":"core","Hard":0,"Soft":0},
    {"Name":"nofile","Hard":256,"Soft":1}],
    "Tmpfs":{"/tmp":"rw,size=8388608,mode=1777","/a":"rw","/b":"size=8m","/c":7}}})");
  ASSERT_TRUE(limits.ok()) << limits.error().text;
  EXPECT_EQ(limits->memory_bytes, 67108864U);
  EXPECT_EQ(limits->memory_and_swap_bytes, 67108865U);
  EXPECT_EQ(limits->pids, 64U);
  EXPECT_EQ(limits->cpu_millis, 500U);
  EXPECT_EQ(limits->nofile, 256U);
  EXPECT_EQ(limits->tmpfs_bytes, (std::map<std::string, uint64_t>{{"/tmp", 8388608}}));
}

TEST(AnswersTest, NoLimitAndNothingSaidAreTwoThings) {
  auto limits = ParseReportedLimits(
      R"({"HostConfig":{"Memory":0,"MemorySwap":-1,"PidsLimit":null,"NanoCpus":0}})");
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->memory_bytes, kReportedUnlimited);
  EXPECT_EQ(limits->memory_and_swap_bytes, kReportedUnlimited);
  EXPECT_EQ(limits->pids, kReportedUnlimited);
  EXPECT_EQ(limits->cpu_millis, kReportedUnlimited);
  EXPECT_EQ(limits->nofile, std::nullopt);
  limits = ParseReportedLimits(R"({"HostConfig":{"Memory":"64m","Ulimits":null,"Tmpfs":null}})");
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->memory_bytes, std::nullopt);
  EXPECT_EQ(limits->cpu_millis, std::nullopt);
  EXPECT_FALSE(ParseReportedLimits("{}").ok());
}

TEST(AnswersTest, ProcessorTimeInEitherSpelling) {
  auto cpu = [](const char* host) {
    return ParseReportedLimits(std::string("{\"HostConfig\":{") + host + "}}")->cpu_millis;
  };
  EXPECT_EQ(cpu(R"("NanoCpus":0,"CpuQuota":50000,"CpuPeriod":100000)"), 500U);
  EXPECT_EQ(cpu(R"("CpuQuota":50000,"CpuPeriod":0)"), 500U);
  EXPECT_EQ(cpu(R"("CpuQuota":0,"CpuPeriod":0)"), kReportedUnlimited);
  EXPECT_EQ(cpu(R"("CpuQuota":18446744073709551615)"), kReportedUnlimited);
}

TEST(AnswersTest, ImagesAreListedWithTheirAge) {
  auto images = ParseImageList(R"([{"Id":"sha256:aa","Created":1700000000,"RepoTags":["a:1"]},
    {"Id":"sha256:bb","RepoTags":null}])");
  ASSERT_TRUE(images.ok());
  ASSERT_EQ(images->size(), 2U);
  EXPECT_EQ(images.value()[0].created_unix_s, 1700000000);
  EXPECT_EQ(images.value()[0].names, (std::vector<std::string>{"a:1"}));
  EXPECT_FALSE(ParseImageList("{}").ok());
  EXPECT_FALSE(ParseImageList("[{}]").ok());
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

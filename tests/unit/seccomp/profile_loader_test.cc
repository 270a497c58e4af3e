#include "seccomp/profile_loader.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "seccomp/evaluator.h"
#include "seccomp/profile.h"
#include "tests/unit/seccomp/table.h"

namespace taskcell::seccomp {
namespace {

using ::testing::HasSubstr;

std::optional<LoadedProfile> Load(const std::string& json, std::string& error) {
  return LoadProfile(json, Architecture::kX86_64, error);
}

// A profile with the one rule `rule` (JSON).
std::string With(const std::string& rule) {
  return R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[)" + rule + "]}";
}

// `call`: number, the first three arguments.
uint32_t AnswerTo(const LoadedProfile& profile, const std::array<uint64_t, 4>& call) {
  seccomp_data data = {};
  data.nr = static_cast<int>(call[0]);
  data.arch = AUDIT_ARCH_X86_64;
  std::copy(call.begin() + 1, call.end(), data.args);
  std::optional<Evaluation> seen = Evaluate(profile.code, data);
  EXPECT_TRUE(seen.has_value());
  return seen.has_value() ? seen->action : 0;
}

uint32_t Answer(const LoadedProfile& profile, int number, uint64_t first_argument = 0) {
  return AnswerTo(profile, {static_cast<uint64_t>(number), first_argument, 0, 0});
}

TEST(ProfileLoaderTest, RulesOfADockerProfileAreKept) {
  std::string error;
  std::optional<LoadedProfile> profile = Load(
      R"({"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":13,
          "archMap":[{"architecture":"SCMP_ARCH_X86_64","subArchitectures":["SCMP_ARCH_X86"]}],
          "syscalls":[
            {"names":["read","write"],"action":"SCMP_ACT_ALLOW","args":null,"comment":"",
             "includes":{},"excludes":{}},
            {"name":"clone3","action":"SCMP_ACT_ERRNO","errnoRet":38},
            {"names":["personality"],"action":"SCMP_ACT_ALLOW",
             "args":[{"index":0,"value":8,"valueTwo":0,"op":"SCMP_CMP_EQ"}]}]})",
      error);
  ASSERT_TRUE(profile.has_value()) << error;
  EXPECT_EQ(profile->default_action, uint32_t{SECCOMP_RET_ERRNO} | EACCES);
  EXPECT_EQ(Answer(*profile, 0), uint32_t{SECCOMP_RET_ALLOW});
  EXPECT_EQ(Answer(*profile, 435), uint32_t{SECCOMP_RET_ERRNO} | ENOSYS);
  EXPECT_EQ(Answer(*profile, 135, 8), uint32_t{SECCOMP_RET_ALLOW});
  EXPECT_EQ(Answer(*profile, 135, 9), uint32_t{SECCOMP_RET_ERRNO} | EACCES);
  EXPECT_EQ(Answer(*profile, 165), uint32_t{SECCOMP_RET_ERRNO} | EACCES);
}

// Of ioctl, setrlimit and prlimit64: number, the first three arguments.
constexpr std::array<uint64_t, 4> kNeverAllowed[] = {
    {16, 0, 0x5412, 0}, {16, 0, 0x541c, 0}, {16, 0, 0x540a, 0},       {16, 0, 0x540c, 0},
    {16, 0, 0x5423, 0}, {16, 0, 0x4b3a, 0}, {16, 0, 0x5606, 0},       {16, 0, 0x700005412, 0},
    {160, 4, 1, 0},     {302, 0, 4, 4096},  {302, 1, 0x300000004, 8},
};
constexpr std::array<uint64_t, 4> kBesideThem[] = {
    {16, 0, 0x5401, 0}, {16, 0, 0x5413, 0}, {160, 7, 1, 0}, {302, 0, 4, 0}, {302, 0, 7, 4096}};

TEST(ProfileLoaderTest, WhatReachesPastTheCellIsRefusedWhateverAProfileAllows) {
  for (const char* json :
       {R"({"defaultAction":"SCMP_ACT_ALLOW"})",
        R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[
            {"names":["ioctl","setrlimit","prlimit64"],"action":"SCMP_ACT_ALLOW"}]})",
        R"({"defaultAction":"SCMP_ACT_LOG","syscalls":[{"names":["ioctl"],"action":"SCMP_ACT_ALLOW",
            "args":[{"index":1,"value":21522,"op":"SCMP_CMP_EQ"}]}]})"}) {
    std::string error;
    std::optional<LoadedProfile> profile = Load(json, error);
    ASSERT_TRUE(profile.has_value()) << error;
    for (const auto& call : kNeverAllowed)
      EXPECT_EQ(AnswerTo(*profile, call), uint32_t{SECCOMP_RET_ERRNO} | EPERM)
          << call[0] << " " << call[2];
    for (const auto& call : kBesideThem)
      EXPECT_NE(AnswerTo(*profile, call), uint32_t{SECCOMP_RET_ERRNO} | EPERM)
          << call[0] << " " << call[2];
  }
}

TEST(ProfileLoaderTest, ProfileThatAllowsByDefaultSaysSo) {
  std::string error;
  std::optional<LoadedProfile> profile = Load(R"({"defaultAction":"SCMP_ACT_ALLOW"})", error);
  ASSERT_TRUE(profile.has_value()) << error;
  EXPECT_EQ(profile->default_action, uint32_t{SECCOMP_RET_ALLOW});
  EXPECT_EQ(ActionName(profile->default_action), "SCMP_ACT_ALLOW");
  EXPECT_EQ(Answer(*profile, 165), uint32_t{SECCOMP_RET_ALLOW});
}

TEST(ProfileLoaderTest, RulesForCapabilitiesAndOtherMachinesAreLeftOut) {
  std::string error;
  std::optional<LoadedProfile> profile = Load(
      With(
          R"({"names":["mount"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_SYS_ADMIN"]}},
             {"names":["read"],"action":"SCMP_ACT_ALLOW","excludes":{"caps":["CAP_SYS_ADMIN"]}},
             {"names":["write"],"action":"SCMP_ACT_ALLOW","includes":{"arches":["s390x"]}},
             {"names":["lseek"],"action":"SCMP_ACT_ALLOW","includes":{"arches":["amd64"]}},
             {"names":["close"],"action":"SCMP_ACT_ALLOW","excludes":{"arches":["amd64"]}},
             {"names":["statx"],"action":"SCMP_ACT_ALLOW","includes":{"minKernel":"4.8"}})"),
      error);
  ASSERT_TRUE(profile.has_value()) << error;
  uint32_t denied = SECCOMP_RET_ERRNO | EPERM;
  EXPECT_EQ(Answer(*profile, 165), denied);                       // mount
  EXPECT_EQ(Answer(*profile, 0), uint32_t{SECCOMP_RET_ALLOW});    // read
  EXPECT_EQ(Answer(*profile, 1), denied);                         // write
  EXPECT_EQ(Answer(*profile, 8), uint32_t{SECCOMP_RET_ALLOW});    // lseek
  EXPECT_EQ(Answer(*profile, 3), denied);                         // close
  EXPECT_EQ(Answer(*profile, 332), uint32_t{SECCOMP_RET_ALLOW});  // statx
}

struct Bad {
  std::string json;
  std::string reason;
};

TEST(ProfileLoaderTest, BadProfilesAreRefusedWithTheReason) {
  std::string rule = R"({"names":["read"],"action":"SCMP_ACT_ALLOW")";
  std::vector<Bad> cases = {
      {"", "parse error"},
      {"{", "parse error"},
      {"[]", "must be an object"},
      {"null", "must be an object"},
      {"{}", "defaultAction"},
      {R"({"defaultAction":7})", "type"},
      {R"({"defaultAction":"SCMP_ACT_TRACE"})", "not supported"},
      {R"({"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":0})", "1 to 4095"},
      {R"({"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":4096})", "1 to 4095"},
      {R"({"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":-1})", "whole number"},
      {R"({"defaultAction":"SCMP_ACT_ERRNO","listenerPath":"/run/x"})", "listenerPath"},
      {R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":{}})", "must be a list"},
      {With("1"), "must be an object"},
      {With(R"({"action":"SCMP_ACT_ALLOW"})"), "names no system call"},
      {With(R"({"names":[1],"action":"SCMP_ACT_ALLOW"})"), "type"},
      {With(R"({"names":["read"],"action":"SCMP_ACT_NOTIFY"})"), "not supported"},
      {With(rule + R"(,"when":"never"})"), "unknown key 'when'"},
      {With(rule + R"(,"includes":{"moon":"full"}})"), "unknown key 'moon'"},
      {With(rule + R"(,"includes":{"minKernel":"5.7"}})"), "kernel version"},
      {With(rule + R"(,"includes":{"minKernel":"new"}})"), "minKernel"},
      {With(rule + R"(,"excludes":{"minKernel":"4.8"}})"), "kernel"},
      {With(rule + R"(,"args":[{"index":6,"op":"SCMP_CMP_EQ"}]})"), "0 to 5"},
      {With(rule + R"(,"args":[{"index":0,"op":"SCMP_CMP_LIKE"}]})"), "SCMP_CMP_LIKE"},
      {With(rule + R"(,"args":[{"index":0,"value":-1,"op":"SCMP_CMP_EQ"}]})"), "whole number"},
      {With(rule + R"(,"args":[{"index":0,"value":1.5,"op":"SCMP_CMP_EQ"}]})"), "whole number"},
      {With(rule + R"(,"args":[{"index":0,"value":1,"valueTwo":2,"op":"SCMP_CMP_MASKED_EQ"}]})"),
       "never hold"},
      {With(
           rule +
           R"(,"args":[{"index":0,"op":"SCMP_CMP_GT"},{"index":0,"value":9,"op":"SCMP_CMP_LT"}]})"),
       "twice"},
      {R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["moutn"],"action":"SCMP_ACT_ERRNO"}]})",
       "moutn"},
  };
  for (const Bad& bad : cases) {
    std::string error;
    EXPECT_FALSE(Load(bad.json, error).has_value()) << bad.json;
    EXPECT_THAT(error, HasSubstr("seccomp profile: ")) << bad.json;
    EXPECT_THAT(error, HasSubstr(bad.reason)) << bad.json;
  }
  std::string error;
  EXPECT_TRUE(Load(With(rule + "}"), error).has_value()) << error;
}

TEST(ProfileLoaderTest, SizeHasALimit) {
  std::string error;
  std::string json = With("");
  json.resize(kMaxProfileBytes, ' ');
  EXPECT_TRUE(Load(json, error).has_value()) << error;
  json += ' ';
  EXPECT_FALSE(Load(json, error).has_value());
  EXPECT_THAT(error, HasSubstr("1048577 bytes"));
}

TEST(ProfileLoaderTest, DeepNestingIsRefusedWithoutDeepRecursion) {
  std::string error;
  constexpr std::size_t kDepth = 100000;
  EXPECT_FALSE(Load(std::string(kDepth, '['), error).has_value());
  EXPECT_FALSE(Load(std::string(kDepth, '[') + std::string(kDepth, ']'), error).has_value());
}

}  // namespace
}  // namespace taskcell::seccomp

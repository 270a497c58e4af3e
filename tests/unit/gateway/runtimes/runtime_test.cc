#include "gateway/runtimes/runtime.h"

#include <gtest/gtest.h>

#include "gateway/config/allowed_host.h"

namespace taskcell::gateway {
namespace {

TEST(RuntimeTest, NamesAliasesAndCaseAreRead) {
  EXPECT_EQ(ParseRuntime("").value(), Runtime::kClaude);
  EXPECT_EQ(ParseRuntime("  Claude\n").value(), Runtime::kClaude);
  EXPECT_EQ(ParseRuntime("CODEX").value(), Runtime::kCodex);
  EXPECT_EQ(ParseRuntime("grok-cli").value(), Runtime::kGrok);
  EXPECT_EQ(ParseRuntime("AGY").value(), Runtime::kAntigravity);
  for (const char* name : {"openai_compat", "openai-compat", "openai", "OpenAI"}) {
    EXPECT_EQ(ParseRuntime(name).value(), Runtime::kOpenAiCompat) << name;
  }
}

TEST(RuntimeTest, WhatCannotRunIsRefusedWithTheSupportedNames) {
  for (const char* name : {"gemini", "qwen", "kimi", "copilot", "kiro", "cursor", "vibe",
                           "opencode", "claud", "claude\x1b[0m"}) {
    Result<Runtime> runtime = ParseRuntime(name);
    ASSERT_FALSE(runtime.ok()) << name;
    EXPECT_EQ(runtime.error().code, "unsupported_runtime");
    EXPECT_EQ(runtime.error().text.find('\x1b'), std::string::npos);
    EXPECT_NE(
        runtime.error().text.find("(supported: claude, codex, antigravity, grok, openai_compat)"),
        std::string::npos);
  }
  EXPECT_EQ(ParseRuntime("Kiro").error().text,
            "runtime `kiro` cannot run in the task sandbox (supported: claude, codex, antigravity, "
            "grok, openai_compat)");
}

TEST(RuntimeTest, IdAndFamilyDifferForOpenAiCompat) {
  EXPECT_EQ(RuntimeId(Runtime::kOpenAiCompat), "openai_compat");
  EXPECT_EQ(FamilyName(Runtime::kOpenAiCompat), "openai-compat");
  EXPECT_EQ(RuntimeId(Runtime::kCodex), "codex");
  EXPECT_EQ(ParseFamily("agy").value(), Runtime::kAntigravity);
  EXPECT_EQ(ParseFamily("nope").error().kind, Kind::kConfig);
}

TEST(RuntimeTest, OnlyAProgramWithoutABrokersAddressHasHostsOfItsOwn) {
  for (Runtime runtime :
       {Runtime::kClaude, Runtime::kCodex, Runtime::kOpenAiCompat, Runtime::kGrok})
    EXPECT_TRUE(OwnHosts(runtime).empty());
  ASSERT_FALSE(OwnHosts(Runtime::kAntigravity).empty());
  for (std::string_view host : OwnHosts(Runtime::kAntigravity))
    EXPECT_TRUE(ParseAllowedHost(host).ok()) << host;
}

TEST(RuntimeTest, OnTheHostRunsWhatHasAProgramOfItsOwn) {
  EXPECT_EQ(ParseHostRuntime("").value(), Runtime::kClaude);
  for (const char* name : {"claude", "codex", "agy", "grok"})
    EXPECT_TRUE(ParseHostRuntime(name).ok());
  for (const char* name : {"openai", "kiro"})
    EXPECT_EQ(ParseHostRuntime(name).error().code, "unsupported_runtime") << name;
}

}  // namespace
}  // namespace taskcell::gateway

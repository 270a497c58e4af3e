#include "gateway/config/sandbox_settings.h"

#include <gtest/gtest.h>

#include <string>

#include "gateway/config/taskcell_settings.h"
#include "gateway/config/toml_document.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

Result<SandboxSettings> Read(std::string_view text) {
  return ReadSandboxSettings(ParseToml(text, "config.toml").value());
}
Result<SandboxSettings> Section(std::string_view lines) {
  return Read(Text("[container.sandbox]\n", lines));
}

TEST(SandboxSettingsTest, DefaultsAreTheGuides) {
  for (std::string_view text : {"", "[container.sandbox]\n", "[container]\n", "[other]\nx = 1\n"}) {
    SandboxSettings settings = Read(text).value();
    EXPECT_EQ(settings.memory_bytes, 4294967296U);
    EXPECT_EQ(settings.pids, 128U);
    EXPECT_EQ(settings.cpu_millis, 1000U);
    EXPECT_EQ(settings.tmp_bytes, 268435456U);
    EXPECT_EQ(settings.workspace_bytes, 536870912U);
    EXPECT_EQ(settings.max_turns, 30U);
    EXPECT_EQ(settings.image.find("ghcr.io/zhixuli0406/duduclaw:v"), 0U);
    EXPECT_EQ(settings.executables.at("claude"), "/usr/bin/claude");
    EXPECT_EQ(settings.executables.at("openai-compat"), "/usr/local/bin/python3");
  }
}

struct NumberBound {
  std::string_view key;
  uint64_t max;
};
class NumberTest : public testing::TestWithParam<NumberBound> {};

TEST_P(NumberTest, MaximumIsAcceptedAndOneMoreIsRefused) {
  const auto [key, max] = GetParam();
  const std::string room = key == "memory_bytes" ? "" : "memory_bytes = 68719476736\n";
  EXPECT_TRUE(Section(Text(room, key, " = ", max)).ok());
  Result<SandboxSettings> over = Section(Text(room, key, " = ", max + 1));
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, "invalid_config");
  EXPECT_NE(over.error().text.find(Text(key, " must be at most ", max)), std::string::npos)
      << over.error().text;
}

TEST_P(NumberTest, OnlyPositiveIntegersAreTaken) {
  for (std::string_view value : {"0", "-1", "1.0", "\"64\"", "true", "[1]", "2030-01-01"}) {
    Result<SandboxSettings> settings = Section(Text(GetParam().key, " = ", value));
    ASSERT_FALSE(settings.ok()) << value;
    EXPECT_NE(settings.error().text.find(Text(GetParam().key, " must be a positive integer")),
              std::string::npos)
        << settings.error().text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllNumbers, NumberTest,
    testing::Values(NumberBound{"memory_bytes", 68719476736}, NumberBound{"tmp_bytes", 17179869184},
                    NumberBound{"workspace_bytes", 17179869184}, NumberBound{"pids", 65536},
                    NumberBound{"cpu_millis", 256000}, NumberBound{"max_turns", 1000}),
    [](const auto& param) { return std::string(param.param.key); });

TEST(SandboxSettingsTest, SumOfTheTmpfsMayEqualTheMemoryAndNotPassIt) {
  EXPECT_TRUE(Section("memory_bytes = 805306368").ok());
  Result<SandboxSettings> over = Section("memory_bytes = 805306367");
  ASSERT_FALSE(over.ok());
  for (std::string_view part :
       {"268435456 + 536870912", "tmp_bytes", "workspace_bytes", "memory_bytes (805306367)"})
    EXPECT_NE(over.error().text.find(part), std::string::npos) << over.error().text;
  EXPECT_NE(Section("memory_bytes = 4096").error().text.find("the unit is bytes"),
            std::string::npos);
  EXPECT_TRUE(Section("memory_bytes = 68719476736\ntmp_bytes = 17179869184\n"
                      "workspace_bytes = 17179869184")
                  .ok());
}

TEST(SandboxSettingsTest, UnknownKeyMakesTheSectionInvalidByName) {
  Result<SandboxSettings> settings = Section("memory = 1");
  ASSERT_FALSE(settings.ok());
  EXPECT_EQ(settings.error().text,
            "[container.sandbox] has an unknown key `memory` (line 2); did you mean "
            "`memory_bytes`?");
  EXPECT_EQ(Section("\n\npid = 1").error().text,
            "[container.sandbox] has an unknown key `pid` (line 4); did you mean `pids`?");
  EXPECT_EQ(Section("colour = 1").error().text,
            "[container.sandbox] has an unknown key `colour` (line 2)");
}

TEST(SandboxSettingsTest, SectionThatIsNoTableIsRefused) {
  EXPECT_FALSE(Read("container = 1").ok());
  EXPECT_FALSE(Read("[container]\nsandbox = true").ok());
  EXPECT_FALSE(Read("[[container.sandbox]]\npids = 1").ok());
}

TEST(SandboxSettingsTest, KeyBelowTheExecutablesHeaderIsExplained) {
  Result<SandboxSettings> settings =
      Section("pids = 64\n[container.sandbox.executables]\nmemory_bytes = 2147483648\n");
  ASSERT_FALSE(settings.ok());
  EXPECT_NE(settings.error().text.find("container.sandbox.executables.memory_bytes"),
            std::string::npos);
  EXPECT_NE(settings.error().text.find("because of the header"), std::string::npos);
}

TEST(SandboxSettingsTest, ExecutablesAreAbsolutePathsOfKnownFamilies) {
  SandboxSettings settings =
      Section("[container.sandbox.executables]\nagy = \"/opt/agy\"\nopenai_compat = \"/opt/py\"\n")
          .value();
  EXPECT_EQ(settings.executables.at("antigravity"), "/opt/agy");
  EXPECT_EQ(settings.executables.at("openai-compat"), "/opt/py");
  const std::string longest = "/" + std::string(255, 'a');
  EXPECT_TRUE(Section(Text("executables.claude = \"", longest, "\"")).ok());
  for (const std::string& bad :
       {std::string("\"bin/claude\""), std::string("\"\""), std::string("\"/a,b\""),
        std::string("\"/a/../b\""), std::string("\"/a\\nb\""), std::string("\"/a\\u0000b\""),
        std::string("1"), Text("\"", longest, "a\"")})
    EXPECT_FALSE(Section(Text("executables.claude = ", bad)).ok()) << bad;
  EXPECT_FALSE(Section("executables.gemini = \"/usr/bin/gemini\"").ok());
  EXPECT_TRUE(Section("executables.claude = \"/a/..b/c..\"").ok());
}

TEST(SandboxSettingsTest, ImageIsTrimmedAndChecked) {
  EXPECT_EQ(Section("image = \"  reg.example/agent:1 \"").value().image, "reg.example/agent:1");
  EXPECT_TRUE(Section("image = \"name@sha256:0123\"").ok());
  EXPECT_TRUE(Section(Text("image = \"", std::string(256, 'a'), "\"")).ok());
  for (const std::string& bad :
       {std::string(""), std::string("a b"), std::string("a,b"), std::string("--privileged"),
        std::string("a\\u0000b"), std::string(257, 'a')})
    EXPECT_FALSE(Section(Text("image = \"", bad, "\"")).ok()) << bad;
}

TEST(EscapeHatchTest, OnlyTheExactStringOpensOneAndEachForItself) {
  auto read = [](std::string_view lines) {
    return ReadEscapeHatches(
        ParseToml(Text("[container.sandbox]\n", lines), "config.toml").value());
  };
  EXPECT_FALSE(read("").task);
  EXPECT_TRUE(read("when_unavailable = \"run_unsandboxed\"").task);
  EXPECT_FALSE(read("when_unavailable = \"run_unsandboxed\"").script);
  EXPECT_TRUE(read("script_when_unavailable = \"run_unsandboxed\"").script);
  for (std::string_view value : {"\"Run_Unsandboxed\"", "\" run_unsandboxed\"", "true", "1"}) {
    EscapeHatches hatches = read(Text("when_unavailable = ", value));
    EXPECT_FALSE(hatches.task) << value;
    EXPECT_EQ(hatches.warnings.size(), 1U) << value;
  }
  EXPECT_TRUE(read("when_unavailable = \"fail\"").warnings.empty());
}

TEST(EscapeHatchTest, IsReadFromASectionThatIsInvalidOtherwise) {
  const ConfigValue config =
      ParseToml("[container.sandbox]\npids = -1\nwhen_unavailable = \"run_unsandboxed\"\n", "c")
          .value();
  EXPECT_FALSE(ReadSandboxSettings(config).ok());
  EXPECT_TRUE(ReadEscapeHatches(config).task);
}

TEST(EscapeHatchTest, IsNotOpenedFromTheWrongTable) {
  const ConfigValue config = ParseToml(
                                 "[container.sandbox.executables]\n"
                                 "when_unavailable = \"run_unsandboxed\"\n",
                                 "c")
                                 .value();
  EXPECT_FALSE(ReadSandboxSettings(config).ok());
  EXPECT_FALSE(ReadEscapeHatches(config).task);
}

TEST(MisplacedKeysTest, KnownNamesInOtherTablesAreNamed) {
  std::vector<std::string> found = FindMisplacedKeys(
      ParseToml("pids = 1\n[gateway]\nimage = 'x'\n[container]\nmemory_bytes = 1\n", "c").value());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NE(found[0].find("`pids` at the top of the file"), std::string::npos);
  EXPECT_NE(found[1].find("`memory_bytes` under [container]"), std::string::npos);
  EXPECT_NE(found[2].find("`image` under [gateway]"), std::string::npos);
  EXPECT_TRUE(FindMisplacedKeys(ParseToml("[container.sandbox]\npids = 1", "c").value()).empty());
}

TEST(TaskcellSettingsTest, BuiltValuesAreTaken) {
  auto read = [](std::string_view lines) {
    return ReadTaskcellSettings(ParseToml(Text("[taskcell]\n", lines), "c").value());
  };
  EXPECT_EQ(read("").value().engine, EngineChoice::kAuto);
  EXPECT_EQ(read("engine = \"native\"").value().engine, EngineChoice::kNative);
  EXPECT_EQ(read("engine = \"docker\"").value().engine, EngineChoice::kDocker);
  EXPECT_EQ(read("engine = \"podman\"").value().engine, EngineChoice::kPodman);
  EXPECT_EQ(read("engine_socket = \"/run/x.sock\"").value().engine_socket, "/run/x.sock");
  EXPECT_EQ(read("engine = \"native\"\nroot = \"/srv/root\"").value().root, "/srv/root");
  EXPECT_TRUE(read("egress = \"provider\"\nallow_missing = []\nunsafe_subtree = \"prune\"").ok());
  EXPECT_FALSE(read("")->cpu_may_be_missing);
  EXPECT_TRUE(read("engine = \"native\"\nallow_missing = [\"cpu\"]")->cpu_may_be_missing);
  EXPECT_EQ(read("unsafe_subtree = \"skip\"")->unsafe_subtree, mounts::Subtree::kSkip);
}

TEST(TaskcellSettingsTest, WhatHasNoEffectWithTheEngineIsRefusedAndNotIgnored) {
  auto read = [](std::string_view text) {
    Result<TaskcellSettings> settings = ReadTaskcellSettings(ParseToml(text, "c").value());
    return settings.ok() ? std::string("ok") : settings.error().text;
  };
  EXPECT_EQ(read("[taskcell]\nroot = \"/srv\""),
            "[taskcell] root is for engine = \"native\" only (line 2)");
  EXPECT_EQ(read("[taskcell]\nengine = \"native\"\nengine_socket = \"/x\""),
            "[taskcell] engine_socket has no effect with engine = \"native\"; remove it (line 3)");
  EXPECT_EQ(read("[taskcell]\nallow_missing = [\"cpu\"]"),
            "[taskcell] allow_missing is for engine = \"native\" only (line 2)");
  const std::string image = "[container.sandbox]\nimage = \"x\"\n[taskcell]\nengine = ";
  EXPECT_NE(read(image + "\"native\"").find("[container.sandbox] image has no effect"),
            std::string::npos);
  EXPECT_EQ(read(image + "\"docker\""), "ok");
}

TEST(TaskcellSettingsTest, TasksAtOnceAreBounded) {
  auto read = [](std::string_view line) {
    return ReadTaskcellSettings(ParseToml(Text("[taskcell]\n", line), "c").value());
  };
  EXPECT_EQ(read("")->max_concurrent, 4U);
  EXPECT_EQ(read("max_concurrent = 1")->max_concurrent, 1U);
  EXPECT_EQ(read("max_concurrent = 256")->max_concurrent, 256U);
  for (const char* line : {"max_concurrent = 257", "max_concurrent = 0", "max_concurrent = \"4\""})
    EXPECT_EQ(read(line).error().code, "invalid_config") << line;
}

TEST(TaskcellSettingsTest, AnOpenNetworkIsForEnginesOnly) {
  auto read = [](std::string_view lines) {
    return ReadTaskcellSettings(ParseToml(Text("[taskcell]\n", lines), "c").value());
  };
  EXPECT_FALSE(read("")->open_egress);
  EXPECT_FALSE(read("egress = \"provider\"\nengine = \"native\"")->open_egress);
  for (const char* engine : {"auto", "docker", "podman"})
    EXPECT_TRUE(read(Text("egress = \"open\"\nengine = \"", engine, "\""))->open_egress) << engine;
  Result<TaskcellSettings> native = read("egress = \"open\"\nengine = \"native\"");
  ASSERT_FALSE(native.ok());
  EXPECT_EQ(native.error().code, "invalid_config");
  for (std::string_view part : {"egress", "native", "use \"provider\""})
    EXPECT_NE(native.error().text.find(part), std::string::npos) << native.error().text;
}

TEST(TaskcellSettingsTest, WhatIsNotBuiltOrUnknownIsRefusedByName) {
  for (std::string_view line :
       {"engine = \"runc\"", "engine = 1", "egress = true", "egress = \"none\"",
        "allow_missing = [\"memory\"]", "allow_missing = \"cpu\"", "unsafe_subtree = \"other\"",
        "upstream_proxy = \"http://x\"", "ca_file = \"x\"", "retention = 1", "prices = {m = 1}",
        "root = \"relative\"", "engine_socket = \"tcp://127.0.0.1:2375\"", "colour = \"red\""}) {
    Result<TaskcellSettings> settings =
        ReadTaskcellSettings(ParseToml(Text("[taskcell]\n", line), "c").value());
    ASSERT_FALSE(settings.ok()) << line;
    EXPECT_EQ(settings.error().code, "invalid_config") << line;
    std::string key(line.substr(0, line.find(' ')));
    EXPECT_NE(settings.error().text.find(key), std::string::npos) << settings.error().text;
  }
}

}  // namespace
}  // namespace taskcell::gateway

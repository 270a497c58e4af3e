// The messages of a script that the sandbox cannot run, byte for byte.
#include "gateway/script/refusal.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr char kImage[] = "ghcr.io/zhixuli0406/duduclaw:v9.9.9";
constexpr char kRemedy[] =
    "The script sandbox needs a running Docker and the image ghcr.io/zhixuli0406/duduclaw:v9.9.9 "
    "present locally; run `docker pull ghcr.io/zhixuli0406/duduclaw:v9.9.9` (it is never pulled "
    "automatically).";

std::string MessageFor(EngineStep step, const Error& error,
                       cell::Engine engine = cell::Engine::kDocker) {
  return RefusalMessage(EngineRefusal(step, error, engine, kImage));
}

Error Coded(std::string_view code, int err = 0) {
  return Error(Kind::kSystem, " words of the engine ", err).Coded(code);
}

TEST(ScriptRefusalTest, EachMessageIsTheGuidesByteForByte) {
  EXPECT_EQ(RefusalMessage(InvalidScriptConfig(
                Error(Kind::kConfig, "[container.sandbox] `pids` must be a positive integer"))),
            "Script sandbox unavailable (invalid_config): config.toml [container.sandbox] is "
            "invalid: [container.sandbox] `pids` must be a positive integer. The script was not "
            "run. Fix the [container.sandbox] section of config.toml.");
  EXPECT_EQ(MessageFor(EngineStep::kFind, Coded("docker_unreachable")),
            Text("Script sandbox unavailable (no_runtime): no container runtime: words of the "
                 "engine. The script was not run. ",
                 kRemedy));
  EXPECT_EQ(MessageFor(EngineStep::kAsk, Coded("docker_unreachable", ECONNREFUSED)),
            Text("Script sandbox unavailable (runtime_unhealthy): the container runtime is not "
                 "reachable: words of the engine. The script was not run. ",
                 kRemedy));
  EXPECT_EQ(MessageFor(EngineStep::kImage, Coded("image_missing")),
            Text("Script sandbox unavailable (image_missing): the sandbox image ", kImage,
                 " is not present locally. The script was not run. ", kRemedy));
  EXPECT_EQ(MessageFor(EngineStep::kMake, Coded("container_create_failed")),
            Text("Script sandbox unavailable (create_failed): the container could not be created: "
                 "words of the engine. The script was not run. ",
                 kRemedy));
  EXPECT_EQ(MessageFor(EngineStep::kMake, Coded("container_start_failed")),
            Text("Script sandbox unavailable (start_failed): the container could not be started: "
                 "words of the engine. The script was not run. ",
                 kRemedy));
}

TEST(ScriptRefusalTest, EveryFaultOfAnEngineHasOneOfTheSixCodes) {
  auto code = [](EngineStep step, const Error& error, cell::Engine engine) {
    return EngineRefusal(step, error, engine, kImage).code;
  };
  const cell::Engine docker = cell::Engine::kDocker;
  const cell::Engine native = cell::Engine::kNative;
  EXPECT_EQ(code(EngineStep::kAsk, Coded("docker_unreachable", ENOENT), docker), "no_runtime");
  EXPECT_EQ(code(EngineStep::kAsk, Coded("engine_unsupported"), docker), "runtime_unhealthy");
  EXPECT_EQ(code(EngineStep::kImage, Coded("docker_unreachable"), docker), "runtime_unhealthy");
  EXPECT_EQ(code(EngineStep::kProve, Coded("resource_limits_unenforced"), docker), "create_failed");
  EXPECT_EQ(code(EngineStep::kMake, Coded("image_missing"), docker), "image_missing");
  EXPECT_EQ(code(EngineStep::kMake, Coded("docker_unreachable"), docker), "runtime_unhealthy");
  EXPECT_EQ(code(EngineStep::kMake, Coded("container_refused"), docker), "create_failed");
  EXPECT_EQ(code(EngineStep::kMake, Coded("cell_mismatch"), docker), "start_failed");
  EXPECT_EQ(code(EngineStep::kRun, Coded("cell_mismatch"), docker), "start_failed");
  const Error no_namespaces =
      Error(Kind::kUnsupported, "namespaces are off").Coded("container_create_failed");
  EXPECT_EQ(code(EngineStep::kMake, no_namespaces, native), "no_runtime");
  EXPECT_EQ(code(EngineStep::kMake, no_namespaces, docker), "create_failed") << "only natively";
  EXPECT_EQ(code(EngineStep::kMake, Coded("container_create_failed"), native), "create_failed");
  EXPECT_EQ(code(EngineStep::kMake, Coded("resource_limits_unenforced"), native), "create_failed");
}

TEST(ScriptRefusalTest, NativelyNoImageIsAskedFor) {
  const std::string message = MessageFor(EngineStep::kMake, Coded(""), cell::Engine::kNative);
  EXPECT_EQ(message.find("docker pull"), std::string::npos) << message;
  EXPECT_NE(message.find("taskcell doctor"), std::string::npos) << message;
}

TEST(ScriptRefusalTest, WhatWasWrongIsBoundedByCharacters) {
  std::string words;
  for (std::size_t count = 0; count <= kMaxWhyCharacters; ++count) words += "\xE9\x9F\x93";
  const ScriptRefusal refusal =
      EngineRefusal(EngineStep::kMake, Error(Kind::kSystem, words), cell::Engine::kDocker, kImage);
  EXPECT_EQ(refusal.why,
            Text("the container could not be created: ", words.substr(0, kMaxWhyCharacters * 3)));
}

TEST(ScriptRefusalTest, OurOwnSectionIsNamedWhereItIsAtFault) {
  const ScriptRefusal refusal =
      InvalidScriptConfig(Error(Kind::kConfig, "[taskcell] has an unknown key `x`"));
  EXPECT_EQ(refusal.remedy, "Fix the [taskcell] section of config.toml.");
}

}  // namespace
}  // namespace taskcell::gateway

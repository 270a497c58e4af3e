#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::gateway {

// The command-line AIs whose streams this version reads. Only claude, codex and openai_compat can
// be run yet; antigravity is here because its output is understood.
enum class Runtime : uint8_t { kClaude, kCodex, kOpenAiCompat, kAntigravity };

// Reads `[runtime] provider` of agent.toml (trimmed, any case, with the platform's aliases; empty
// is claude). A runtime this version cannot run, and a name nobody knows, is an Error coded
// "unsupported_runtime" that names the supported ones.
Result<Runtime> ParseRuntime(std::string_view provider);

// The id as in agent.toml: "claude", "codex", "openai_compat".
std::string_view RuntimeId(Runtime runtime);

// The family name, as in [container.sandbox.executables] and in messages: "openai-compat" with a
// dash.
std::string_view FamilyName(Runtime runtime);

// The family behind a key of [container.sandbox.executables] or behind `--runtime` of the test
// driver: the aliases of ParseRuntime without its judgement on what is supported. Nothing known:
// an Error of kind kConfig.
Result<Runtime> ParseFamily(std::string_view name);

}  // namespace taskcell::gateway

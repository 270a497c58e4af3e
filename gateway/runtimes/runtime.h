#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"

namespace taskcell::gateway {

// The command-line AIs this version knows.
enum class Runtime : uint8_t { kClaude, kCodex, kOpenAiCompat, kAntigravity, kGrok };

// Reads `[runtime] provider` of agent.toml (trimmed, any case, with the platform's aliases; empty
// is claude). A runtime no cell can run, and a name nobody knows, is an Error coded
// "unsupported_runtime" that names the supported ones.
Result<Runtime> ParseRuntime(std::string_view provider);

// The same for the host itself, where openai_compat has no program of its own.
Result<Runtime> ParseHostRuntime(std::string_view provider);

// The places ("host:port") a program without a setting for its provider's address speaks to by
// itself, through a tunnel of its cell and with the credential in its own hands; empty for all the
// others, whose requests go through the broker.
std::span<const std::string_view> OwnHosts(Runtime runtime);

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

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/runtimes/runtime.h"
#include "launcher/base/result.h"
#include "launcher/cell/job.h"
#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

// What the placeholder in the cell looks like. A program chooses its way of signing in by the shape
// of the credential, so the placeholder has the shape of the real one, and nothing else of it.
enum class CredentialShape : uint8_t {
  kApiKey,
  kOauthToken,  // claude only: a token made by `claude setup-token`
};

// Where the cell finds our own loop for openai_compat, which also answers antigravity's hook,
// mounted read-only like taskcell-init.
inline constexpr std::string_view kLoopPath = "/run/taskcell/loop";
// The job's HOME and temporary directory, on the cell's /tmp.
inline constexpr std::string_view kJobHome = "/tmp/dudu-private/home";
inline constexpr std::string_view kJobTmp = "/tmp/dudu-private/tmp";
inline constexpr std::string_view kJobDirectory = "/workspace";

// What the programs were seen to send (claude 2.1.197, codex 0.171.0, no network but loopback), for
// whoever judges their requests:
// - claude: HEAD / without a credential, then POST /v1/messages?beta=true (SSE). x-api-key, or with
//   an OAuth token `authorization: Bearer` and anthropic-beta oauth-2025-04-20. Body keys:
//   context_management, max_tokens, messages, metadata, model, stream, system, thinking, tools; its
//   tools carry no `type`. Accepts gzip, deflate, br, zstd.
// - codex: POST /v1/responses (SSE), `authorization: Bearer`, store false, include
//   ["reasoning.encrypted_content"], tools of type function and custom (apply_patch). For models in
//   its code mode (gpt-5.6-*, gpt-6-*) `tools` is absent and the first element of `input` is
//   {"type":"additional_tools","role":"developer","tools":[{"type":"namespace","tools":[...]}]};
//   the one tool for work there is custom, exec: a script that calls exec_command and the others.
// - taskcell-loop: POST <base>/chat/completions, `authorization: Bearer`, not streamed, tools of
//   type function.

struct JobRequest {
  Runtime runtime = Runtime::kClaude;
  std::string executable;  // absolute path in the cell; unused for openai_compat
  std::string model;       // for openai_compat the model alone, without "<provider>/"
  uint64_t max_turns = 30;
  std::vector<std::string> denied_tools;  // [capabilities] denied_tools; heeded by claude only
  std::string prompt;                     // whole, with the system instructions
  uint16_t broker_port = 0;               // the cell's loopback listener
  uint16_t tunnel_port = 0;               // its listener for tunnels; 0: none
  bool open_network = false;              // it may connect to more than those two
  sys::SecretText secret;                 // the credential, for a runtime with OwnHosts alone
  CredentialShape shape = CredentialShape::kApiKey;
  uint64_t timeout_ms = 0;
};

// Makes the job of one task: argv, environment, small files and standard input. The prompt is only
// ever standard input (a file for grok, which reads none). The real credential is nowhere, but for
// a runtime with OwnHosts, which gets it in its environment. Where there is a listener for tunnels,
// https goes through it. Refuses (kConfig) an empty or option-like model, one with control bytes, a
// relative executable; a zero port or zero turns, and of a runtime with OwnHosts an empty secret or
// a cell without tunnels. Pure.
Result<cell::Job> PlanJob(const JobRequest& request);

// The placeholder a job of this runtime carries instead of a credential. It is the same in every
// cell, so finding it outside one is a leak of nothing.
std::string_view PlaceholderCredential(Runtime runtime, CredentialShape shape);

// The model the program is started with: the agent's `model`, but for claude's own short names
// ("sonnet"), which would be sent to the provider as they are once every model variable is pinned.
std::string StartModel(Runtime runtime, std::string_view model);

// The model names the program may put into its requests when the agent's model is `model`. The
// broker refuses every other.
std::vector<std::string> ModelsFor(Runtime runtime, std::string_view model);

}  // namespace taskcell::gateway

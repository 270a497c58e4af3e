#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/runtimes/runtime.h"
#include "launcher/base/result.h"
#include "launcher/cell/job.h"
#include "launcher/sys/secret_text.h"

namespace taskcell::gateway {

// What one task on the host itself is given.
struct HostJobRequest {
  Runtime runtime = Runtime::kClaude;
  std::string model;
  uint64_t max_turns = 30;
  std::vector<std::string> denied_tools;  // [capabilities] denied_tools; heeded by claude only
  std::string prompt;                     // whole, with the system instructions
  sys::SecretText secret;  // of the account; empty: the program's own login has to do
  bool oauth = false;      // `secret` is a stored token, not an API key (claude)
  // The gateway's own environment, of which only what HostEnvironment names is handed on.
  std::map<std::string, std::string, std::less<>> environment;
  std::string override_url;  // of the provider, from the gateway's environment; empty: its own
  uint64_t timeout_ms = 0;
};

// Makes the job of one task that runs on the host: the runtime's program as the PATH names it, with
// the tools and settings it has there. The prompt is only ever standard input, and the credential
// only in the environment. `working_directory` is left to the caller. Errors as PlanJob, and
// unsupported_runtime for openai_compat, which has no program of its own. Pure.
Result<cell::Job> PlanHostJob(const HostJobRequest& request);

// The entries of `environment` that a program on the host may have, "NAME=value": where it is, who
// it is for, how it speaks, which proxy it takes. No credential is among them.
std::vector<std::string> HostEnvironment(
    const std::map<std::string, std::string, std::less<>>& environment);

// The provider whose accounts pay for a runtime on the host: "anthropic", "openai", ...
std::string_view HostProvider(Runtime runtime);

}  // namespace taskcell::gateway

#include "gateway/runtimes/plan_host_job.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gateway/runtimes/command_parts.h"
#include "gateway/runtimes/tool_names.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::array<std::string_view, 23> kHandedOn = {"PATH",
                                                        "HOME",
                                                        "USER",
                                                        "LOGNAME",
                                                        "SHELL",
                                                        "LANG",
                                                        "LC_ALL",
                                                        "LC_CTYPE",
                                                        "TERM",
                                                        "TERMINFO",
                                                        "TMPDIR",
                                                        "TZ",
                                                        "HTTP_PROXY",
                                                        "CLAUDE_CONFIG_DIR",
                                                        "XDG_CONFIG_HOME",
                                                        "HTTPS_PROXY",
                                                        "NO_PROXY",
                                                        "http_proxy",
                                                        "https_proxy",
                                                        "XDG_DATA_HOME",
                                                        "no_proxy",
                                                        "XDG_CACHE_HOME",
                                                        "XDG_STATE_HOME"};
constexpr std::string_view kPlatformPrefix = "DUDUCLAW_";
// Where a gateway without a PATH looks for programs.
constexpr std::string_view kDefaultPath = "PATH=/usr/local/bin:/usr/bin:/bin";

void Add(cell::Job& job, std::string_view name, std::string_view value) {
  if (!value.empty()) job.environment.push_back(Text(name, "=", value));
}

// Its tools are the ones the agent's own directory and settings give it; what would have to be
// asked for is denied, since nobody is there to answer.
void PlanClaude(const HostJobRequest& request, cell::Job& job) {
  job.argv = {"claude",
              "-p",
              "--output-format",
              "stream-json",
              "--verbose",
              "--model",
              request.model,
              "--max-turns",
              Text(request.max_turns),
              "--allowedTools",
              Joined(kClaudeTools),
              "--permission-mode",
              "dontAsk",
              "--no-session-persistence"};
  std::string denied = ToolList(request.denied_tools);
  if (!denied.empty()) {
    job.argv.emplace_back("--disallowedTools");
    job.argv.push_back(std::move(denied));
  }
  Add(job, request.oauth ? "CLAUDE_CODE_OAUTH_TOKEN" : "ANTHROPIC_API_KEY", request.secret);
  Add(job, "ANTHROPIC_BASE_URL", request.override_url);
  Add(job, "DISABLE_AUTOUPDATER", "1");
}

void PlanCodex(const HostJobRequest& request, cell::Job& job) {
  job.argv = {"codex",
              "exec",
              "--json",
              "--ephemeral",
              "--skip-git-repo-check",
              "--dangerously-bypass-approvals-and-sandbox",
              "--model",
              request.model};
  if (!request.override_url.empty()) AddCodexProvider(request.override_url, job.argv);
  job.argv.emplace_back("-");
  Add(job, "OPENAI_API_KEY", request.secret);
  Add(job, "CODEX_API_KEY", request.secret);
}

void PlanAntigravity(const HostJobRequest& request, cell::Job& job) {
  job.argv = AntigravityCommand("agy", request.model);
  job.input = AntigravityInput(request.prompt);
  Add(job, "GEMINI_API_KEY", request.secret);
}

// grok reads no standard input of itself, but a file of that name.
void PlanGrok(const HostJobRequest& request, cell::Job& job) {
  job.argv = {"grok",
              "--prompt-file",
              "/dev/stdin",
              "--output-format",
              "streaming-messages-json",
              "-m",
              request.model,
              "--max-turns",
              Text(request.max_turns),
              "--permission-mode",
              "bypassPermissions",
              "--no-auto-update"};
  Add(job, "XAI_API_KEY", request.secret);
  Add(job, "GROK_XAI_API_BASE_URL", request.override_url);
  Add(job, "GROK_DISABLE_AUTOUPDATER", "1");
}

}  // namespace

std::vector<std::string> HostEnvironment(
    const std::map<std::string, std::string, std::less<>>& environment) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : environment) {
    const bool named = std::find(kHandedOn.begin(), kHandedOn.end(), name) != kHandedOn.end();
    if (named || name.starts_with(kPlatformPrefix)) entries.push_back(Text(name, "=", value));
  }
  const bool has_path = std::any_of(entries.begin(), entries.end(), [](const std::string& entry) {
    return entry.starts_with("PATH=");
  });
  if (!has_path) entries.emplace_back(kDefaultPath);
  return entries;
}

std::string_view HostProvider(Runtime runtime) {
  switch (runtime) {
    case Runtime::kClaude:
      return "anthropic";
    case Runtime::kAntigravity:
      return "gemini";
    case Runtime::kGrok:
      return "xai";
    case Runtime::kCodex:
    case Runtime::kOpenAiCompat:
      break;
  }
  return "openai";
}

Result<cell::Job> PlanHostJob(const HostJobRequest& request) {
  TRY(CheckModelName(request.model));
  cell::Job job;
  job.stdio = cell::JobStdio::kRelay;
  job.input = request.prompt;
  job.timeout_ms = request.timeout_ms;
  job.environment = HostEnvironment(request.environment);
  switch (request.runtime) {
    case Runtime::kClaude:
      PlanClaude(request, job);
      return job;
    case Runtime::kCodex:
      PlanCodex(request, job);
      return job;
    case Runtime::kAntigravity:
      PlanAntigravity(request, job);
      return job;
    case Runtime::kGrok:
      PlanGrok(request, job);
      return job;
    case Runtime::kOpenAiCompat:
      break;
  }
  return Error(Kind::kUnsupported, "openai_compat has no program that could run on the host")
      .Coded("unsupported_runtime");
}

}  // namespace taskcell::gateway

#include "gateway/runtimes/plan_job.h"

#include <utility>

#include "gateway/runtimes/command_parts.h"
#include "gateway/runtimes/tool_names.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kEmptyMcpFile = "empty-mcp.json";
constexpr std::string_view kAntigravitySettings = ".gemini/antigravity-cli/settings.json";
constexpr std::string_view kAntigravityHooks = ".gemini/config/hooks.json";
constexpr std::string_view kGrokPromptFile = "prompt.txt";

// Settings of codex that keep it from everything but files and a shell. Each is known to
// `--strict-config`; the integration test runs the real program with them.
constexpr std::string_view kCodexSettings[] = {
    "approval_policy=\"never\"",         "mcp_servers={}",          "web_search=\"disabled\"",
    "features.multi_agent=false",        "features.hooks=false",    "features.plugins=false",
    "features.memories=false",           "features.apps=false",     "project_doc_max_bytes=0",
    "check_for_update_on_startup=false", "analytics.enabled=false", "agents.enabled=false",
};

Status CheckRequest(const JobRequest& request) {
  TRY(CheckModelName(request.model));
  if (request.runtime != Runtime::kOpenAiCompat &&
      (request.executable.empty() || request.executable[0] != '/')) {
    return Error(Kind::kConfig, Text("the executable of ", FamilyName(request.runtime),
                                     " must be an absolute path in the cell"))
        .Coded("invalid_config");
  }
  if (request.broker_port == 0) return Error(Kind::kInternal, "a job needs the broker's port");
  if (!OwnHosts(request.runtime).empty() && (request.tunnel_port == 0 || request.secret.empty()))
    return Error(Kind::kInternal, "a job that speaks to its provider itself needs a way and a key");
  if (request.max_turns == 0) return Error(Kind::kInternal, "a job needs a step limit");
  return Ok();
}

// Makes an environment from nothing; a later Set of one name wins nothing, it is a bug.
class Environment {
 public:
  Environment& Set(std::string_view name, std::string_view value) {
    entries_.push_back(Text(name, "=", value));
    return *this;
  }
  std::vector<std::string> Take() && { return std::move(entries_); }

 private:
  std::vector<std::string> entries_;
};

std::string HomePath(std::string_view name) { return Text(kJobHome, "/", name); }

Environment BaseEnvironment() {
  Environment environment;
  environment.Set("PATH", "/usr/local/bin:/usr/bin:/bin")
      .Set("HOME", kJobHome)
      .Set("TMPDIR", kJobTmp)
      .Set("LANG", "C.UTF-8")
      .Set("TZ", "UTC")
      .Set("PYTHONDONTWRITEBYTECODE", "1");
  return environment;
}

std::string BaseUrl(const JobRequest& request, std::string_view path) {
  return Text("http://127.0.0.1:", request.broker_port, path);
}

void PlanClaude(const JobRequest& request, cell::Job& job) {
  std::string model = StartModel(Runtime::kClaude, request.model);
  job.argv = {request.executable,
              "-p",
              "--output-format",
              "stream-json",
              "--verbose",
              "--model",
              model,
              "--max-turns",
              Text(request.max_turns),
              "--tools",
              Joined(kClaudeTools),
              "--allowedTools",
              Joined(kClaudeTools),
              "--permission-mode",
              "dontAsk",
              "--strict-mcp-config",
              "--mcp-config",
              HomePath(kEmptyMcpFile),
              "--setting-sources",
              "",
              "--disable-slash-commands",
              "--no-session-persistence",
              "--safe-mode"};
  std::string denied = ToolList(request.denied_tools);
  if (!denied.empty()) {
    job.argv.push_back("--disallowedTools");
    job.argv.push_back(std::move(denied));
  }
  job.files.push_back({std::string(kEmptyMcpFile), 0600, "{\"mcpServers\":{}}\n"});
  job.directories.push_back(HomePath(".claude"));

  Environment environment = BaseEnvironment();
  environment.Set("CLAUDE_CONFIG_DIR", HomePath(".claude"))
      .Set("CLAUDE_CODE_TMPDIR", kJobTmp)
      .Set("DISABLE_AUTOUPDATER", "1")
      .Set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
      .Set("CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP", "1")
      .Set("ANTHROPIC_BASE_URL", BaseUrl(request, ""))
      .Set(request.shape == CredentialShape::kOauthToken ? "CLAUDE_CODE_OAUTH_TOKEN"
                                                         : "ANTHROPIC_API_KEY",
           PlaceholderCredential(Runtime::kClaude, request.shape));
  // Every model variable is pinned, so that helper requests use the agent's model too.
  for (std::string_view name :
       {"ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL",
        "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_OPUS_MODEL",
        "ANTHROPIC_DEFAULT_FABLE_MODEL", "CLAUDE_CODE_SUBAGENT_MODEL"}) {
    environment.Set(name, model);
  }
  job.environment = std::move(environment).Take();
}

void PlanCodex(const JobRequest& request, cell::Job& job) {
  job.argv = {request.executable,
              "exec",
              "--json",
              "--strict-config",
              "--ignore-user-config",
              "--ignore-rules",
              "--ephemeral",
              "--skip-git-repo-check",
              "--dangerously-bypass-approvals-and-sandbox",
              "--model",
              request.model,
              "--cd",
              std::string(kJobDirectory)};
  for (std::string_view setting : kCodexSettings) {
    job.argv.emplace_back("-c");
    job.argv.emplace_back(setting);
  }
  AddCodexProvider(BaseUrl(request, "/v1"), job.argv);
  job.argv.push_back("-");
  job.directories.push_back(HomePath(".codex"));  // codex refuses to start without it

  std::string_view key = PlaceholderCredential(Runtime::kCodex, request.shape);
  job.environment = std::move(BaseEnvironment()
                                  .Set("CODEX_HOME", HomePath(".codex"))
                                  .Set("OPENAI_API_KEY", key)
                                  .Set("CODEX_API_KEY", key))
                        .Take();
}

void PlanLoop(const JobRequest& request, cell::Job& job) {
  job.argv = {std::string(kLoopPath), request.model, Text(request.max_turns)};
  job.environment =
      std::move(
          BaseEnvironment()
              .Set("OPENAI_BASE_URL", BaseUrl(request, "/v1"))
              .Set("OPENAI_API_KEY", PlaceholderCredential(Runtime::kOpenAiCompat, request.shape)))
          .Take();
}

// grok ignores its standard input.
void PlanGrok(const JobRequest& request, cell::Job& job) {
  job.argv = {request.executable,
              "--prompt-file",
              HomePath(kGrokPromptFile),
              "--output-format",
              "streaming-messages-json",
              "--cwd",
              std::string(kJobDirectory),
              "-m",
              request.model,
              "--max-turns",
              Text(request.max_turns),
              "--permission-mode",
              "bypassPermissions",
              "--tools",
              Joined(kGrokTools),
              "--disallowed-tools",
              Joined(kGrokDenied),
              "--disable-web-search",
              "--no-subagents",
              "--no-plan",
              "--no-auto-update"};
  job.files.push_back({std::string(kGrokPromptFile), 0600, std::exchange(job.input, {})});
  job.directories.push_back(HomePath(".grok"));
  job.environment =
      std::move(BaseEnvironment()
                    .Set("GROK_HOME", HomePath(".grok"))
                    .Set("GROK_DISABLE_AUTOUPDATER", "1")
                    .Set("GROK_SUBAGENTS", "0")
                    .Set("GROK_MEMORY", "0")
                    .Set("GROK_FOLDER_TRUST", "0")
                    .Set("GROK_TELEMETRY_ENABLED", "0")
                    .Set("GROK_XAI_API_BASE_URL", BaseUrl(request, "/v1"))
                    .Set("XAI_API_KEY", PlaceholderCredential(Runtime::kGrok, request.shape)))
          .Take();
}

// Every tool is asked about first: a forbidden one is refused, and the program goes on.
std::string HooksOfAntigravity() {
  return Text(R"({"taskcell-tools":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command",)",
              R"("command":")", kLoopPath, " ", kToolGuard, R"(","timeout":10}]}]}})", "\n");
}

// It takes no address of a broker: its requests go through tunnels, with the key in its own hands.
void PlanAntigravity(const JobRequest& request, cell::Job& job) {
  job.argv = AntigravityCommand(request.executable, request.model);
  job.input = AntigravityInput(request.prompt);
  job.files.push_back(
      {std::string(kAntigravitySettings), 0600,
       Text("{\"modelProvider\":\"gemini\",\"trustedWorkspaces\":[\"", kJobDirectory, "\"]}\n")});
  job.files.push_back({std::string(kAntigravityHooks), 0600, HooksOfAntigravity()});
  job.environment = std::move(BaseEnvironment().Set("GEMINI_API_KEY", request.secret)).Take();
}

// https goes to the listener for tunnels; the broker's own, which speaks plain HTTP, is asked
// directly.
void AddProxy(const JobRequest& request, cell::Job& job) {
  if (request.tunnel_port == 0) return;
  for (std::string_view name : {"HTTPS_PROXY", "https_proxy"})
    job.environment.push_back(Text(name, "=http://127.0.0.1:", request.tunnel_port));
  for (std::string_view name : {"NO_PROXY", "no_proxy"})
    job.environment.push_back(Text(name, "=127.0.0.1,localhost"));
}

void PlanProgram(const JobRequest& request, cell::Job& job) {
  switch (request.runtime) {
    case Runtime::kClaude:
      return PlanClaude(request, job);
    case Runtime::kCodex:
      return PlanCodex(request, job);
    case Runtime::kOpenAiCompat:
      return PlanLoop(request, job);
    case Runtime::kGrok:
      return PlanGrok(request, job);
    case Runtime::kAntigravity:
      return PlanAntigravity(request, job);
  }
}

}  // namespace

Result<cell::Job> PlanJob(const JobRequest& request) {
  TRY(CheckRequest(request));
  cell::Job job;
  job.working_directory = std::string(kJobDirectory);
  job.home = std::string(kJobHome);
  job.directories.push_back(std::string(kJobTmp));
  job.stdio = cell::JobStdio::kRelay;
  job.input = request.prompt;
  job.timeout_ms = request.timeout_ms;
  if (!request.open_network) job.loopback_port = request.broker_port;
  job.tunnel_port = request.tunnel_port;
  PlanProgram(request, job);
  AddProxy(request, job);
  return job;
}

std::string_view PlaceholderCredential(Runtime runtime, CredentialShape shape) {
  if (runtime != Runtime::kClaude) {
    return "sk-taskcell-placeholder-not-a-credential-000000000000";
  }
  return shape == CredentialShape::kOauthToken
             ? "sk-ant-oat01-taskcell-placeholder-not-a-credential-00000000000000000000-AA"
             : "sk-ant-api03-taskcell-placeholder-not-a-credential-00000000000000000000-AA";
}

}  // namespace taskcell::gateway

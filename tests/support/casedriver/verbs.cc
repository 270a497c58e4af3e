#include "tests/support/casedriver/verbs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "gateway/cli/run_command.h"
#include "gateway/cli/sweep_command.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/config/toml_document.h"
#include "gateway/runtimes/stream.h"
#include "gateway/task/answer_json.h"
#include "gateway/task/host_surroundings.h"
#include "gateway/task/sweep_home.h"
#include "launcher/base/defer.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "probe/cells/docker_engine.h"
#include "probe/engine/client.h"
#include "probe/engine/endpoint.h"

namespace taskcell::casedriver {
namespace {

namespace fs = std::filesystem;
using gateway::ConfigValue;

constexpr int kUsage = 2;

void PutEffective(JsonText& json, const Result<gateway::SandboxSettings>& settings,
                  const gateway::EscapeHatches& hatches) {
  auto word = [](bool open) { return open ? "run_unsandboxed" : "fail"; };
  json.Key("effective").Open('{');
  json.Key("when_unavailable").String(word(hatches.task));
  json.Key("script_when_unavailable").String(word(hatches.script));
  if (settings.ok()) {
    json.Key("image").String(settings->image);
    json.Key("memory_bytes").Unsigned(settings->memory_bytes);
    json.Key("pids").Unsigned(settings->pids).Key("cpu_millis").Unsigned(settings->cpu_millis);
    json.Key("tmp_bytes").Unsigned(settings->tmp_bytes);
    json.Key("workspace_bytes").Unsigned(settings->workspace_bytes);
    json.Key("max_turns").Unsigned(settings->max_turns);
    json.Key("executables").Open('{');
    for (const auto& [family, path] : settings->executables) json.Key(family).String(path);
    json.Close('}');
  }
  json.Close('}');
}

// Both sections of a configuration that may itself be unreadable.
struct Checked {
  Result<gateway::SandboxSettings> settings;
  gateway::EscapeHatches hatches;
  std::vector<std::string> warnings;
};

Checked Check(const std::string& path) {
  Checked checked{Error(Kind::kInternal, ""), {}, {}};
  const fs::path file(path);
  std::string parent = file.parent_path().empty() ? "." : file.parent_path().string();
  Result<UniqueFd> directory = sys::Open(parent, O_RDONLY | O_DIRECTORY);
  if (!directory.ok()) {
    checked.settings = directory.error();
    return checked;
  }
  mounts::FileReader files;
  Result<ConfigValue> config =
      gateway::ReadToml(files, directory->get(), file.filename(), file.filename().string());
  if (!config.ok() && config.error().err == ENOENT) config = ConfigValue();
  if (!config.ok()) {
    checked.settings = config.error();
    return checked;
  }
  checked.settings = gateway::ReadSandboxSettings(config.value());
  Result<gateway::TaskcellSettings> own = gateway::ReadTaskcellSettings(config.value());
  if (checked.settings.ok() && !own.ok()) checked.settings = own.error();
  checked.hatches = gateway::ReadEscapeHatches(config.value());
  checked.warnings = gateway::FindMisplacedKeys(config.value());
  return checked;
}

// A case's directory may be another user's: a task needs a home of its own.
bool IsWritable(const fs::path& directory) {
  return sys::CheckAccess(AT_FDCWD, directory.empty() ? "." : directory.string(), W_OK).ok();
}

// A home whose config.toml is `config`, with the agents of the directory it lies in.
Result<std::string> CopyHome(const fs::path& config) {
  std::string home = "/tmp/taskcell-casehome-XXXXXX";
  if (::mkdtemp(home.data()) == nullptr) return Error(Kind::kSystem, "mkdtemp failed");
  std::error_code error;
  fs::copy_file(config, fs::path(home) / "config.toml", error);
  fs::path agents = config.parent_path() / "agents";
  if (fs::exists(agents))
    fs::copy(agents, fs::path(home) / "agents", fs::copy_options::recursive, error);
  return home;
}

Result<std::string> HomeForAgent(const fs::path& agent_config) {
  std::string home = "/tmp/taskcell-casehome-XXXXXX";
  if (::mkdtemp(home.data()) == nullptr) return Error(Kind::kSystem, "mkdtemp failed");
  std::error_code error;
  fs::create_directories(fs::path(home) / "agents" / "agent", error);
  fs::copy_file(agent_config, fs::path(home) / "agents" / "agent" / "agent.toml", error);
  return home;
}

// The [agent] name of a file, or "agent" where it has none: the case is about something else then.
std::string AgentNameIn(const std::string& home) {
  UniqueFd directory = sys::Open(home, O_RDONLY | O_DIRECTORY).value();
  mounts::FileReader files;
  Result<ConfigValue> document =
      gateway::ReadToml(files, directory.get(), "agents/agent/agent.toml", "agent.toml");
  if (!document.ok()) return "agent";
  const ConfigValue* agent = document->Find("agent");
  const ConfigValue* name = agent == nullptr ? nullptr : agent->Find("name");
  return name == nullptr ? "agent" : name->text;
}

}  // namespace

int Complain(std::string_view what) {
  std::fprintf(stderr, "taskcell-casedriver: %s\n", std::string(what).c_str());
  return kUsage;
}

int PrintAnswer(const gateway::TaskAnswer& answer, bool json) {
  if (json) {
    std::puts(gateway::AnswerJson(answer).c_str());
  } else if (answer.reply.has_value()) {
    std::puts(answer.reply->c_str());
  } else {
    std::printf("%s: %s\n", answer.code.c_str(), answer.message.c_str());
  }
  return answer.ok() ? 0 : 1;
}

int ConfigCheck(const Arguments& arguments) {
  const std::string path(arguments.Get("config"));
  if (path.empty()) return Complain("config-check needs --config FILE");
  const Checked checked = Check(path);
  const bool ok = checked.settings.ok();
  const std::string message = ok ? "" : checked.settings.error().text;
  if (!arguments.json) {
    std::printf("%s%s%s\n", ok ? "ok" : "invalid_config", ok ? "" : ": ", message.c_str());
    for (const std::string& warning : checked.warnings)
      std::printf("warning: %s\n", warning.c_str());
    return ok ? 0 : 1;
  }
  JsonText json;
  json.Open('{').Key("code").String(ok ? "ok" : "invalid_config");
  json.Key("message").String(message).Key("warnings").Open('[');
  for (const std::string& warning : checked.warnings) json.String(warning);
  for (const std::string& warning : checked.hatches.warnings) json.String(warning);
  json.Close(']');
  PutEffective(json, checked.settings, checked.hatches);
  json.Close('}');
  std::puts(json.text().c_str());
  return ok ? 0 : 1;
}

int RunTaskVerb(const Arguments& arguments) {
  const fs::path config(arguments.Get("config"));
  const fs::path agent_config(arguments.Get("agent-config"));
  gateway::TaskRequest request;
  request.agent = arguments.Get("agent");
  request.prompt = arguments.Get("prompt").empty() ? "Say hello." : arguments.Get("prompt");
  std::string temporary;
  Defer clean([&temporary] {
    std::error_code ignored;
    if (!temporary.empty()) fs::remove_all(temporary, ignored);
  });
  if (!agent_config.empty()) {
    Result<std::string> home = HomeForAgent(agent_config);
    if (!home.ok()) return Complain(home.error().text);
    temporary = home.value();
    request.agent = AgentNameIn(temporary);
  } else if (config.empty() || request.agent.empty()) {
    return Complain("run-task needs --config FILE --agent NAME, or --agent-config FILE");
  } else if (config.filename() != "config.toml" || !IsWritable(config.parent_path())) {
    Result<std::string> home = CopyHome(config);
    if (!home.ok()) return Complain(home.error().text);
    temporary = home.value();
  }
  request.home = !temporary.empty()             ? temporary
                 : config.parent_path().empty() ? "."
                                                : config.parent_path().string();
  Result<std::unique_ptr<gateway::HostSurroundings>> host = gateway::HostSurroundings::Make();
  if (!host.ok()) return Complain(host.error().text);
  gateway::Surroundings surroundings = host.value()->For(-1);
  return PrintAnswer(gateway::RunTask(request, surroundings), arguments.json);
}

int Doctor(const Arguments& arguments) {
  Result<probe::Endpoint> endpoint = probe::ChooseEndpoint(probe::SettingsFromEnvironment(""));
  std::string error = endpoint.ok() ? "" : endpoint.error().text;
  if (endpoint.ok()) {
    probe::DockerEngine engine(endpoint.value());
    Status reachable = engine.CheckReachable();
    if (!reachable.ok()) error = Text(reachable.error().code, ": ", reachable.error().text);
  }
  const std::string url = endpoint.ok() ? endpoint->Url() : "";
  if (arguments.json) {
    JsonText json;
    json.Open('{').Key("engine").Open('{').Key("endpoint").String(url);
    json.Key("error").String(error).Close('}').Close('}');
    std::puts(json.text().c_str());
  } else {
    std::printf("engine: %s %s\n", url.c_str(), error.empty() ? "answers" : error.c_str());
  }
  return error.empty() ? 0 : 1;
}

int SweepVerb(const Arguments& arguments) {
  std::optional<uint64_t> now = ParseUnsigned(arguments.Get("now"));
  const std::string path(arguments.Get("home"));
  if (path.empty() || !now.has_value()) return Complain("sweep needs --home DIR --now EPOCH");
  Result<gateway::Home> home = gateway::OpenHome(path);
  if (!home.ok()) return Complain(home.error().text);
  Result<gateway::SweepReport> report =
      gateway::SweepHome(home.value(), {static_cast<int64_t>(*now), false});
  if (!report.ok()) return Complain(report.error().text);
  std::puts(gateway::SweepJson(report.value()).c_str());
  return report->failures.empty() ? 0 : 1;
}

int Parse(const Arguments& arguments) {
  constexpr uint64_t kDefaultTurns = 30;
  Result<gateway::Runtime> runtime = gateway::ParseFamily(arguments.Get("runtime"));
  std::optional<uint64_t> cli_exit = ParseUnsigned(arguments.Get("cli-exit"));
  if (!runtime.ok() || !cli_exit.has_value())
    return Complain("parse needs --runtime R --cli-exit N");
  gateway::StreamReader reader(runtime.value(),
                               ParseUnsigned(arguments.Get("max-turns")).value_or(kDefaultTurns));
  std::array<char, 4096> chunk;
  while (true) {
    Result<std::size_t> got = sys::Read(STDIN_FILENO, chunk);
    if (!got.ok() || got.value() == 0) break;
    if (!reader.TakeStdout(std::string_view(chunk.data(), got.value()))) break;
  }
  const gateway::ParsedRun run = reader.Finish(static_cast<int>(*cli_exit));
  JsonText json;
  json.Open('{').Key("outcome").String(gateway::OutcomeName(run.outcome)).Key("reply");
  if (run.reply.has_value()) {
    json.String(*run.reply);
  } else {
    json.Null();
  }
  json.Key("step_limit").Bool(run.step_limit).Key("violation").String(run.violation);
  json.Key("detail").String(run.detail).Close('}');
  std::puts(json.text().c_str());
  return run.outcome == gateway::StreamOutcome::kSuccess ? 0 : 1;
}

int RemoveContainer(const Arguments& arguments) {
  if (arguments.rest.size() != 1) return Complain("remove-container needs one ID");
  Result<probe::Endpoint> endpoint = probe::ChooseEndpoint(probe::SettingsFromEnvironment(""));
  Status removed = Ok();
  if (endpoint.ok()) {
    removed = probe::EngineClient(endpoint.value()).Remove(arguments.rest[0]);
  } else {
    removed = endpoint.error();
  }
  JsonText json;
  json.Open('{').Key("clean").Bool(removed.ok());
  json.Key("error").String(removed.ok() ? "" : removed.error().text).Close('}');
  std::puts(json.text().c_str());
  return removed.ok() ? 0 : 1;
}

}  // namespace taskcell::casedriver

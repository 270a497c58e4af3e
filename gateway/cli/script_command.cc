#include "gateway/cli/script_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <memory>

#include "gateway/cli/output.h"
#include "gateway/config/agent_config.h"
#include "gateway/config/environment.h"
#include "gateway/config/home.h"
#include "gateway/script/poc.h"
#include "gateway/task/host_surroundings.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/termination.h"

namespace taskcell::gateway {
namespace {

constexpr int kUsage = 2;
constexpr int kNotRun = 125;

// Reads to one byte past the bound, so that a refusal needs no more memory than that.
Result<std::string> ReadBytes(const std::string& path, std::size_t limit, std::string_view what) {
  UniqueFd file;
  if (path != "-") file = TRY(sys::Open(path, O_RDONLY | O_NOCTTY).With(what));
  Result<std::string> bytes =
      sys::ReadAllWithin(path == "-" ? STDIN_FILENO : file.get(), limit, -1);
  if (bytes.ok()) return bytes;
  if (bytes.error().err == EFBIG)
    return Error(Kind::kUsage, Text(what, " has more than ", limit, " bytes"));
  return std::move(bytes).error().With(what);
}

int Print(const ScriptAnswer& answer, bool json) {
  for (const std::string& warning : answer.warnings) Tell(Text("warning: ", Printable(warning)));
  // A refusal's message names its code itself.
  if (!answer.ok())
    Tell(answer.why.empty() ? Text(answer.code, ": ", answer.message) : answer.message);
  // ignoring a reader of standard error that is gone: there is nobody to be told
  if (!json && !answer.err.empty()) (void)sys::WriteAll(STDERR_FILENO, answer.err);
  const bool printed = PrintOutput(json ? ScriptAnswerJson(answer) + "\n" : answer.out);
  return printed ? ScriptExitStatus(answer) : kNotRun;
}

int PrintPoc(const PocEvidence& evidence, bool json) {
  const bool printed = PrintOutput(json ? PocJson(evidence) + "\n"
                                        : Text(evidence.kind, ": ", evidence.detail, "\n"));
  return printed && evidence.kind == "poc_transcript" ? 0 : kNotRun;
}

Result<int> Run(const ScriptOptions& options, const ScriptRequest& request) {
  UniqueFd cancel = TRY(sys::CatchTermination());
  std::unique_ptr<HostSurroundings> host = TRY(HostSurroundings::Make());
  Surroundings surroundings = host->For(cancel.get());
  if (options.poc) return PrintPoc(RunPoc(request, surroundings), options.json);
  return Print(RunScript(request, surroundings), options.json);
}

}  // namespace

Result<ScriptRequest> BaseRequest(const std::string& home_option, const std::string& agent_option) {
  const Environment environment = ProcessEnvironment();
  ScriptRequest request;
  request.home = TRY(ChooseHome(home_option, environment));
  request.agent = agent_option;
  if (request.agent.empty()) request.agent = Lookup(environment, "DUDUCLAW_AGENT_ID");
  if (request.agent.empty()) request.agent = "default";
  if (IsAgentName(request.agent)) return request;
  return Error(Kind::kUsage, Text("'", Printable(request.agent.substr(0, kMaxAgentNameBytes)),
                                  "' is no agent's name: letters, digits, '_' and '-'"));
}

Result<ScriptRequest> RequestOf(const ScriptOptions& options) {
  ScriptRequest request = TRY(BaseRequest(options.home, options.agent));
  request.language = TRY(ParseLanguage(options.language));
  if (options.poc && request.language == ScriptLanguage::kJavascript)
    return Error(Kind::kUsage, "a proof of concept is a python or bash script");
  if (options.file == "-" && options.input == "-")
    return Error(Kind::kUsage, "script and --stdin cannot both come from standard input");
  request.code = TRY(ReadBytes(options.file, kMaxScriptBytes, "the script"));
  if (!options.input.empty())
    request.input = TRY(ReadBytes(options.input, kMaxScriptInputBytes, "--stdin"));
  constexpr uint64_t kMillis = 1000;
  request.timeout_ms = options.poc ? kPocTimeoutMs : options.timeout_seconds * kMillis;
  return request;
}

int ScriptCommand(const ScriptOptions& options) {
  Status hidden = sys::SetNotDumpable();
  Result<ScriptRequest> request =
      hidden.ok() ? RequestOf(options) : Result<ScriptRequest>(hidden.error());
  if (!request.ok()) {
    Tell(Printable(request.error().text));
    return kUsage;
  }
  Result<int> status = Run(options, request.value());
  if (status.ok()) return status.value();
  Tell(Printable(status.error().text));
  return kNotRun;
}

}  // namespace taskcell::gateway

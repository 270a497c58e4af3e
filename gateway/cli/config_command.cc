#include "gateway/cli/config_command.h"

#include <unistd.h>

#include <algorithm>

#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/config/check_configuration.h"
#include "gateway/task/check_agents.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

bool IsFatal(const ConfigProblem& problem) { return problem.fatal; }

std::string ProblemsJson(const Home& home, const std::vector<ConfigProblem>& problems, bool valid) {
  JsonText json;
  json.Open('{').Key("home").String(home.path).Key("valid").Bool(valid).Key("problems").Open('[');
  for (const ConfigProblem& problem : problems) {
    json.Open('{').Key("file").String(problem.file);
    json.Key("severity").String(problem.fatal ? "error" : "warning");
    json.Key("message").String(problem.text).Close('}');
  }
  json.Close(']').Close('}');
  return json.text();
}

std::string ProblemsText(const Home& home, const std::vector<ConfigProblem>& problems) {
  std::string text;
  for (const ConfigProblem& problem : problems)
    text += Text(Printable(problem.file),
                 problem.fatal ? ": " : ": warning: ", Printable(problem.text), "\n");
  const auto errors = std::count_if(problems.begin(), problems.end(), IsFatal);
  const auto warnings = static_cast<std::ptrdiff_t>(problems.size()) - errors;
  return Text(text, Printable(home.path), ": ",
              errors == 0 ? Text("the configuration is valid")
                          : Text(errors, errors == 1 ? " error" : " errors"),
              warnings == 0   ? ""
              : warnings == 1 ? ", 1 warning"
                              : Text(", ", warnings, " warnings"),
              "\n");
}

}  // namespace

int ConfigCheckCommand(const std::string& home_option, bool json) {
  constexpr int kInvalid = 1;
  constexpr int kUsage = 2;
  const Environment environment = ProcessEnvironment();
  Result<Home> home = OpenChosenHome(home_option, environment);
  if (!home.ok()) {
    Tell(home.error().text);
    return kUsage;
  }
  std::vector<ConfigProblem> problems = CheckConfiguration(home.value(), environment);
  for (ConfigProblem& problem : CheckAgents(home.value(), environment))
    problems.push_back(std::move(problem));
  const bool valid = std::none_of(problems.begin(), problems.end(), IsFatal);
  const std::string text = json ? ProblemsJson(home.value(), problems, valid) + "\n"
                                : ProblemsText(home.value(), problems);
  if (!PrintOutput(text)) return kUsage;
  return valid ? 0 : kInvalid;
}

}  // namespace taskcell::gateway

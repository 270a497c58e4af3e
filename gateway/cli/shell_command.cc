#include "gateway/cli/shell_command.h"

#include <unistd.h>

#include <memory>

#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/operator/shell.h"
#include "gateway/task/answer.h"
#include "gateway/task/host_surroundings.h"
#include "launcher/base/text.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/terminal.h"
#include "launcher/sys/termination.h"

namespace taskcell::gateway {
namespace {

constexpr int kUsage = 2;
constexpr int kRefused = 3;
constexpr int kNotRun = 125;
constexpr int kStopped = 130;

Result<int> Run(const Home& home, const std::string& agent) {
  TRY(sys::SetNotDumpable());
  UniqueFd cancel = TRY(sys::CatchTermination());
  std::unique_ptr<HostSurroundings> host = TRY(HostSurroundings::Make());
  Surroundings surroundings = host->For(cancel.get());
  return RunShell(home, agent, surroundings, [](std::string_view line) { Tell(line); });
}

}  // namespace

int ShellCommand(const std::string& home_option, const std::string& agent) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    Tell(
        "shell is for a person at a terminal: standard input and output must be one; for a script "
        "use taskcell script");
    return kUsage;
  }
  // 0: a terminal that has no jobs, such as one of another session.
  const pid_t foreground = sys::ForegroundGroup(STDIN_FILENO);
  if (foreground != 0 && foreground != ::getpgrp()) {
    Tell("shell is for a person at a terminal, and another job has this one: start it without &");
    return kUsage;
  }
  Result<Home> home = OpenChosenHome(home_option, ProcessEnvironment());
  if (!home.ok()) {
    Tell(Printable(home.error().text));
    return kUsage;
  }
  Result<int> status = Run(home.value(), agent);
  if (status.ok()) return status.value();
  const Error& error = status.error();
  Tell(Text(error.code, error.code.empty() ? "" : ": ", Printable(error.text)));
  if (error.code == "stopped") return kStopped;
  return error.code == "sandbox_disabled" || IsUnavailable(error.code) ? kRefused : kNotRun;
}

}  // namespace taskcell::gateway

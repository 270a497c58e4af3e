#include "gateway/cli/hostile_command.h"

#include <memory>

#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/operator/hostile.h"
#include "gateway/task/host_surroundings.h"
#include "launcher/base/text.h"
#include "launcher/sys/termination.h"
#include "probe/attack/print.h"

namespace taskcell::gateway {
namespace {

Result<attack::Report> Run(const std::string& home_option,
                           const std::vector<std::string>& attacks) {
  const Home home = TRY(OpenChosenHome(home_option, ProcessEnvironment()));
  UniqueFd cancel = TRY(sys::CatchTermination());
  std::unique_ptr<HostSurroundings> host = TRY(HostSurroundings::Make());
  Surroundings surroundings = host->For(cancel.get());
  return AttackHome(home, attacks, surroundings);
}

}  // namespace

int HostileCommand(const std::string& home_option, const std::vector<std::string>& attacks,
                   bool json) {
  constexpr int kEscaped = 1;
  constexpr int kUnknown = 2;
  constexpr int kStopped = 130;
  Result<attack::Report> report = Run(home_option, attacks);
  if (!report.ok()) {
    Tell(Printable(report.error().text));
    return kUnknown;
  }
  const bool printed = PrintOutput(json ? attack::ReportJson(report.value())
                                        : attack::ReportText(report.value(), false));
  if (!IsSafe(report.value())) return kEscaped;
  if (report->refusal.has_value() && report->refusal->code == "stopped") return kStopped;
  return printed && attack::Overall(report.value()) == attack::Verdict::kContained ? 0 : kUnknown;
}

}  // namespace taskcell::gateway

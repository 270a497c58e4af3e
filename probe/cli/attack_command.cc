#include "probe/cli/attack_command.h"

#include "probe/attack/attack.h"
#include "probe/attack/print.h"
#include "probe/cli/host_command.h"
#include "probe/cli/live_command.h"
#include "probe/cli/output.h"

namespace taskcell::probe {
namespace {

int Show(const attack::Report& report, const AttackOptions& options) {
  std::string text;
  if (options.json)
    text = attack::ReportJson(report);
  else if (options.sarif)
    text = attack::ReportSarif(report);
  else
    text = attack::ReportText(report, options.quiet);
  if (!Print(text)) return kExitUnknown;
  switch (attack::Overall(report)) {
    case attack::Verdict::kContained:
      return kExitReady;
    case attack::Verdict::kEscaped:
      return kExitNotReady;
    case attack::Verdict::kNotProvable:
      break;
  }
  return kExitUnknown;
}

}  // namespace

int AttackCommand(const AttackOptions& options) {
  if (options.list) return Print(attack::PayloadList()) ? kExitReady : kExitUnknown;
  Result<std::vector<const attack::Payload*>> payloads = attack::Choose(options.attacks);
  if (!payloads.ok()) return Complain(payloads.error());
  Result<std::function<bool()>> stopped = CatchStop();
  if (!stopped.ok()) return Complain(stopped.error());
  if (options.engine == "native")
    return Show(attack::AttackNative(payloads.value(), stopped.value()), options);
  Result<Endpoint> endpoint = FindProbeEndpoint(options.engine);
  if (endpoint.ok()) {
    return Show(attack::AttackEngine(endpoint.value(), payloads.value(), stopped.value()), options);
  }
  if (endpoint.error().kind == Kind::kUsage) return Complain(endpoint.error());
  attack::Report report;
  report.engine = options.engine;
  report.refusal = std::move(endpoint).error();
  return Show(report, options);
}

}  // namespace taskcell::probe

#include "probe/cli/live_command.h"

#include <poll.h>

#include <cstdlib>
#include <memory>

#include "launcher/base/text.h"
#include "launcher/native/values.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/termination.h"
#include "probe/cli/host_command.h"
#include "probe/cli/output.h"
#include "probe/live/engine_probe.h"
#include "probe/live/native_probe.h"
#include "probe/live/print.h"

namespace taskcell::probe {
namespace {

int Show(const live::Report& report, const LiveOptions& options) {
  bool printed =
      Print(options.json ? live::ReportJson(report) : live::ReportText(report, options.quiet));
  if (!printed) return kExitUnknown;
  switch (live::Overall(report)) {
    case live::Verdict::kHeld:
      return kExitReady;
    case live::Verdict::kNotHeld:
      return kExitNotReady;
    case live::Verdict::kUnknown:
      break;
  }
  return kExitUnknown;
}

// Probes with `probe(asked, stopped)`, told to stop by a signal.
template <typename Probe>
int Run(const LiveOptions& options, Probe probe) {
  Result<live::Asked> asked = ParseAsked(options);
  if (!asked.ok()) return Complain(asked.error());
  Result<std::function<bool()>> stopped = CatchStop();
  if (!stopped.ok()) return Complain(stopped.error());
  return Show(probe(asked.value(), stopped.value()), options);
}

}  // namespace

Result<live::Asked> ParseAsked(const LiveOptions& options) {
  live::Asked asked;
  if (!options.memory.empty())
    asked.limits.memory_bytes = TRY(native::ParseSize(options.memory).With("--memory"));
  if (!options.pids.empty())
    asked.limits.pids = TRY(native::ParseCount(options.pids, live::kMostProbePids).With("--pids"));
  if (!options.cpus.empty())
    asked.limits.cpu_millis = TRY(native::ParseCpus(options.cpus).With("--cpus"));
  TRY(live::CheckAsked(asked));
  return asked;
}

Result<Endpoint> ChooseProbeEndpoint(const std::string& engine, const EndpointSettings& settings) {
  if (engine == "auto") return ChooseEndpoint(settings);
  if (engine == "docker") return ChooseEndpoint(settings, EngineFlavour::kDocker);
  if (engine == "podman") return ChooseEndpoint(settings, EngineFlavour::kPodman);
  if (engine.starts_with("unix:"))
    return Endpoint{TRY(ParseEngineUrl(engine, "the command line")), "the command line", {}};
  return Error(Kind::kUsage, Text("'", Printable(engine),
                                  "' is no engine: auto, docker, podman, native or unix:///path"));
}

Result<Endpoint> FindProbeEndpoint(const std::string& engine) {
  return ChooseProbeEndpoint(engine, SettingsFromEnvironment(""));
}

Result<std::function<bool()>> CatchStop() {
  auto ending = std::make_shared<UniqueFd>(TRY(sys::CatchTermination()));
  return std::function<bool()>([ending] {
    Result<short> ready = sys::Poll(ending->get(), POLLIN, 0);
    return !ready.ok() || ready.value() != 0;
  });
}

int LiveCommand(const LiveOptions& options) { return Run(options, live::ProbeNative); }

int EngineCommand(const EngineOptions& options) {
  if (options.engine == "native") return Run(options.live, live::ProbeNative);
  Result<Endpoint> endpoint = FindProbeEndpoint(options.engine);
  if (!endpoint.ok()) {
    if (endpoint.error().kind == Kind::kUsage) return Complain(endpoint.error());
    live::Report report;
    report.engine = options.engine;
    report.refusal = std::move(endpoint).error();
    return Show(report, options.live);
  }
  return Run(options.live, [&](const live::Asked& asked, const std::function<bool()>& stopped) {
    return live::ProbeEngine(endpoint.value(), asked, options.keep_image, stopped);
  });
}

}  // namespace taskcell::probe

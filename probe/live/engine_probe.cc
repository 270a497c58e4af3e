#include "probe/live/engine_probe.h"

#include "launcher/base/text.h"
#include "launcher/sys/signals.h"
#include "probe/cells/program.h"
#include "probe/live/engine_setting.h"

namespace taskcell::live {
namespace {

constexpr uint64_t kUsPerMs = 1000;

Result<Report> Probe(probe::DockerEngine& engine, const probe::Endpoint& endpoint,
                     const Asked& asked, bool keep_image, const std::function<bool()>& stopped) {
  std::string breaker = TRY(probe::FindProgram("taskcell-breaker"));
  EngineSetting made = TRY(PrepareEngine(engine, endpoint, breaker, keep_image));
  Report report = BreakLimits(engine, made.setting, asked, stopped);
  Status removed = made.image.Remove();
  if (!removed.ok()) report.warnings.push_back(Text("left behind: ", removed.error().text));
  return report;
}

}  // namespace

Report ProbeEngine(const probe::Endpoint& endpoint, const Asked& asked, bool keep_image,
                   const std::function<bool()>& stopped) {
  uint64_t start_us = sys::MonotonicUs();
  probe::DockerEngine engine(endpoint);
  Result<Report> probed = Probe(engine, endpoint, asked, keep_image, stopped);
  Report report;
  if (probed.ok()) {
    report = std::move(probed).value();
  } else {
    report.refusal = std::move(probed).error();
  }
  report.engine = engine.Name();
  report.wall_ms = (sys::MonotonicUs() - start_us) / kUsPerMs;
  return report;
}

}  // namespace taskcell::live

#include "probe/live/engine_probe.h"

#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/mounts/scratch_directory.h"
#include "launcher/native/request.h"
#include "launcher/sys/signals.h"
#include "probe/cells/docker_engine.h"
#include "probe/cells/program.h"
#include "probe/live/leftovers.h"
#include "probe/live/probe_image.h"

namespace taskcell::live {
namespace {

constexpr uint64_t kUsPerMs = 1000;
constexpr int64_t kMsPerSecond = 1000;

Result<Report> Probe(probe::DockerEngine& engine, const probe::Endpoint& endpoint,
                     const Asked& asked, bool keep_image, const std::function<bool()>& stopped) {
  TRY(engine.CheckReachable());
  Setting setting;
  std::string run_id = TRY(native::MakeRunId());
  setting.uid = setting.gid = kNobody;
  if (engine.info().rootless || engine.info().user_namespaces) {
    // The engine maps it into a range of its own, which need not reach up to nobody.
    setting.uid = setting.gid = kInsideId;
  } else if (::geteuid() != 0 && ::getegid() != 0) {
    probe::CellIds ids = TRY(engine.ChooseIds(run_id));
    setting.uid = ids.uid;
    setting.gid = ids.gid;
  }
  setting.places.init_program = TRY(probe::FindProgram("taskcell-init"));
  std::string breaker = TRY(probe::FindProgram("taskcell-breaker"));
  mounts::ScratchDirectory scratch = TRY(mounts::ScratchDirectory::Make("probe", run_id));
  setting.places.run_directory = scratch.path();
  probe::EngineClient client(endpoint);
  RemoveLeftovers(client, sys::UnixMs() / kMsPerSecond);
  ProbeImage image = TRY(ProbeImage::Make(endpoint, breaker, run_id, keep_image));
  setting.root = cell::RootKind::kImage;
  setting.root_source = image.id();
  Report report = BreakLimits(engine, setting, asked, stopped);
  Status removed = image.Remove();
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

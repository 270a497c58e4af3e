#include "probe/live/engine_probe.h"

#include "launcher/base/text.h"
#include "launcher/cgroup/situation.h"
#include "launcher/sys/file_tree.h"
#include "launcher/sys/signals.h"
#include "probe/cells/program.h"
#include "probe/live/engine_setting.h"
#include "probe/live/unenforced.h"

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

// The cgroups of whose engine it is; nothing where they can't be looked at.
std::optional<cgroup::Situation> ReadOwner(const probe::Endpoint& endpoint) {
  Result<sys::RootedTree> host = sys::RootedTree::OpenHost();
  if (!host.ok()) return std::nullopt;
  sys::FileSeen socket = host->Look(endpoint.socket_path);
  if (!socket.owner_known) return std::nullopt;
  cgroup::Subject subject;
  subject.uid = socket.uid;
  subject.user_manager = true;
  return cgroup::ReadSituation(host.value(), subject);
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
  if (!report.refusal) {
    if (auto owner = ReadOwner(endpoint))
      report.refusal = WhyUnenforced(report.rows, engine.info(), *owner);
  }
  report.wall_ms = (sys::MonotonicUs() - start_us) / kUsPerMs;
  return report;
}

}  // namespace taskcell::live

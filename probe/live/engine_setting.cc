#include "probe/live/engine_setting.h"

#include <unistd.h>

#include "launcher/native/request.h"
#include "launcher/sys/signals.h"
#include "probe/cells/program.h"
#include "probe/live/leftovers.h"

namespace taskcell::live {
namespace {

constexpr int64_t kMsPerSecond = 1000;

}  // namespace

Result<EngineSetting> PrepareEngine(probe::DockerEngine& engine, const probe::Endpoint& endpoint,
                                    const std::string& program, bool keep_image) {
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
  mounts::ScratchDirectory scratch = TRY(mounts::ScratchDirectory::Make("probe", run_id));
  setting.places.run_directory = scratch.path();
  probe::EngineClient client(endpoint);
  RemoveLeftovers(client, sys::UnixMs() / kMsPerSecond);
  ProbeImage image = TRY(ProbeImage::Make(endpoint, program, run_id, keep_image));
  setting.root = cell::RootKind::kImage;
  setting.root_source = image.id();
  return EngineSetting{std::move(setting), std::move(scratch), std::move(image)};
}

}  // namespace taskcell::live

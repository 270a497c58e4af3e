#include "gateway/operator/image_pull.h"

#include <memory>
#include <utility>

#include "gateway/config/sandbox_settings.h"
#include "gateway/config/taskcell_settings.h"
#include "gateway/operator/image_check.h"
#include "gateway/task/admission.h"
#include "gateway/task/host_surroundings.h"
#include "launcher/base/text.h"
#include "probe/engine/pull.h"

namespace taskcell::gateway {

Result<PulledImage> PullImage(const Home& home, const std::string& image,
                              Surroundings& surroundings,
                              const std::function<void(const probe::PullLine&)>& on_line) {
  const ConfigValue config = TRY(ReadConfig(home));
  const SandboxSettings settings = TRY(ReadSandboxSettings(config));
  const TaskcellSettings own = TRY(ReadTaskcellSettings(config));
  if (own.engine == EngineChoice::kNative)
    return Error(
               Kind::kConfig,
               Text("engine \"native\" has no images, so there is nothing to pull: its cells use ",
                    own.root == "host" ? std::string("the host's programs")
                                       : Text("what lies in '", Printable(own.root), "'"),
                    "; install the AI programs there ([taskcell] root), or set [taskcell] engine "
                    "to docker or podman"))
        .Coded("pull_failed");
  // What answers must be the engine that is wanted.
  std::unique_ptr<probe::CellEngine> engine = TRY(surroundings.make_engine(own));
  TRY(engine->CheckReachable());
  const probe::Endpoint endpoint = TRY(ChooseHostEndpoint(own));
  PulledImage pulled;
  pulled.engine = engine->Name();
  pulled.image = image.empty() ? settings.image : image;
  pulled.host_architecture = TRY(HostArchitecture());
  probe::ImageAnswer answer =
      TRY(probe::PullImage(endpoint, pulled.image, surroundings.cancel_fd, on_line));
  pulled.id = std::move(answer.id);
  pulled.digests = std::move(answer.digests);
  pulled.architecture = std::move(answer.architecture);
  return pulled;
}

}  // namespace taskcell::gateway

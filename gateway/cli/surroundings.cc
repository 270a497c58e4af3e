#include "gateway/cli/surroundings.h"

#include <unistd.h>

#include "gateway/engine/docker_engine.h"
#include "gateway/engine/native_engine.h"

namespace taskcell::gateway {

Result<std::unique_ptr<CellEngine>> MakeHostEngine(const TaskcellSettings& settings) {
  if (settings.engine == EngineChoice::kNative)
    return std::unique_ptr<CellEngine>(std::make_unique<NativeEngine>());
  return std::unique_ptr<CellEngine>(TRY(FindDockerEngine(settings.engine_socket)));
}

Result<std::unique_ptr<HostSurroundings>> HostSurroundings::Make(int cancel_fd) {
  std::unique_ptr<HostSurroundings> host(new HostSurroundings);
  Surroundings& surroundings = host->surroundings_;
  surroundings.environment = ProcessEnvironment();
  surroundings.effective_uid = ::geteuid();
  surroundings.programs = TRY(FindPrograms());
  surroundings.make_engine = MakeHostEngine;
  surroundings.broker = [host = host.get()]() -> Result<Broker*> {
    if (host->broker_ == nullptr) host->broker_ = TRY(Broker::Start());
    return host->broker_.get();
  };
  surroundings.cancel_fd = cancel_fd;
  return host;
}

}  // namespace taskcell::gateway

#include "gateway/cli/surroundings.h"

#include <unistd.h>

#include "probe/cells/docker_engine.h"
#include "probe/cells/native_engine.h"

namespace taskcell::gateway {
namespace {

probe::EngineFlavour FlavourOf(EngineChoice engine) {
  switch (engine) {
    case EngineChoice::kDocker:
      return probe::EngineFlavour::kDocker;
    case EngineChoice::kPodman:
      return probe::EngineFlavour::kPodman;
    default:
      return probe::EngineFlavour::kAny;
  }
}

}  // namespace

Result<probe::Endpoint> ChooseHostEndpoint(const TaskcellSettings& settings) {
  return probe::ChooseEndpoint(probe::SettingsFromEnvironment(settings.engine_socket),
                               FlavourOf(settings.engine));
}

Result<std::unique_ptr<probe::CellEngine>> MakeHostEngine(const TaskcellSettings& settings,
                                                          int cancel_fd) {
  if (settings.engine == EngineChoice::kNative)
    return std::unique_ptr<probe::CellEngine>(std::make_unique<probe::NativeEngine>());
  probe::Endpoint endpoint = TRY(ChooseHostEndpoint(settings));
  auto engine = std::make_unique<probe::DockerEngine>(
      std::move(endpoint), FlavourOf(settings.engine), probe::DockerEngine::Report::kChecked);
  engine->CancelOn(cancel_fd);
  return std::unique_ptr<probe::CellEngine>(std::move(engine));
}

Result<std::unique_ptr<HostSurroundings>> HostSurroundings::Make(int cancel_fd) {
  std::unique_ptr<HostSurroundings> host(new HostSurroundings);
  Surroundings& surroundings = host->surroundings_;
  surroundings.environment = ProcessEnvironment();
  surroundings.effective_uid = ::geteuid();
  surroundings.programs = TRY(FindPrograms());
  surroundings.make_engine = [cancel_fd](const TaskcellSettings& settings) {
    return MakeHostEngine(settings, cancel_fd);
  };
  surroundings.prove_limits = [host = host.get()](const Home& home, probe::CellEngine& engine,
                                                  const SandboxSettings& settings) {
    return host->limits_probe_.Check(home, engine, settings, host->surroundings_.programs);
  };
  surroundings.broker = [host = host.get()]() -> Result<Broker*> {
    if (host->broker_ == nullptr) host->broker_ = TRY(Broker::Start());
    return host->broker_.get();
  };
  surroundings.is_first_uncovered = [host = host.get()](const std::string& agent, TaskKind kind) {
    return host->uncovered_.IsFirst(agent, kind);
  };
  surroundings.cancel_fd = cancel_fd;
  return host;
}

}  // namespace taskcell::gateway

#include "gateway/task/host_surroundings.h"

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

// The engine `settings` name: "auto" is never native.
Result<std::unique_ptr<probe::CellEngine>> HostSurroundings::MakeEngine(
    const TaskcellSettings& settings, int cancel_fd) {
  if (settings.engine == EngineChoice::kNative) {
    auto native = std::make_unique<probe::NativeEngine>();
    native->CancelOn(cancel_fd);
    return std::unique_ptr<probe::CellEngine>(std::move(native));
  }
  probe::Endpoint endpoint = TRY(ChooseHostEndpoint(settings));
  std::shared_ptr<probe::EngineClient> client = engines_.Take(
      endpoint.Describe(), [&] { return std::make_unique<probe::EngineClient>(endpoint); });
  auto engine = std::make_unique<probe::DockerEngine>(std::move(client), FlavourOf(settings.engine),
                                                      probe::DockerEngine::Report::kChecked);
  engine->CancelOn(cancel_fd);
  return std::unique_ptr<probe::CellEngine>(std::move(engine));
}

Result<std::unique_ptr<HostSurroundings>> HostSurroundings::Make() {
  std::unique_ptr<HostSurroundings> host(new HostSurroundings);
  host->environment_ = ProcessEnvironment();
  host->programs_ = TRY(FindPrograms());
  return host;
}

Surroundings HostSurroundings::For(int cancel_fd) {
  Surroundings surroundings;
  surroundings.environment = environment_;
  surroundings.effective_uid = ::geteuid();
  surroundings.programs = programs_;
  surroundings.files =
      files_.Take("", [this] { return std::make_unique<mounts::FileReader>(programs_.launch); });
  surroundings.snapshots = snapshots_.Take(
      "", [this] { return std::make_unique<mounts::SnapshotTaker>(programs_.launch); });
  surroundings.make_engine = [this, cancel_fd](const TaskcellSettings& settings) {
    return MakeEngine(settings, cancel_fd);
  };
  surroundings.prove_limits = [this, cancel_fd](const Home& home, probe::CellEngine& engine,
                                                const SandboxSettings& settings) {
    return limits_probe_.Check(home, engine, settings, programs_, cancel_fd);
  };
  surroundings.broker = [this] { return SharedBroker(); };
  surroundings.is_first_uncovered = [this](const std::string& agent, TaskKind kind) {
    return uncovered_.IsFirst(agent, kind);
  };
  surroundings.cancel_fd = cancel_fd;
  return surroundings;
}

Result<Broker*> HostSurroundings::SharedBroker() {
  std::lock_guard lock(mutex_);
  if (broker_ == nullptr) broker_ = TRY(Broker::Start());
  return broker_.get();
}

}  // namespace taskcell::gateway

#include "gateway/task/sweep_home.h"

#include <memory>
#include <utility>

#include "gateway/config/taskcell_settings.h"
#include "gateway/sweep/retention.h"
#include "gateway/task/admission.h"
#include "gateway/task/host_surroundings.h"
#include "launcher/base/text.h"
#include "probe/attack/world.h"
#include "probe/engine/client.h"

namespace taskcell::gateway {
namespace {

EngineContainers ContainersOf(probe::Endpoint endpoint) {
  EngineContainers engine;
  engine.socket_path = endpoint.socket_path;
  auto client = std::make_shared<probe::EngineClient>(std::move(endpoint));
  engine.list = [client](const std::string& label) -> Result<std::vector<probe::ListedContainer>> {
    TRY(client->Negotiate());
    return client->ListTasks(label);
  };
  engine.remove = [client](const std::string& id) { return client->Remove(id); };
  return engine;
}

EngineContainers FormerEngine(const std::string& socket_path) {
  return ContainersOf({socket_path, "the ledger", {}});
}

// An engine that cannot even be found is one that cannot be listed.
EngineContainers Unfound(const Error& error) {
  EngineContainers engine;
  engine.list = [error](const std::string&) -> Result<std::vector<probe::ListedContainer>> {
    return error;
  };
  return engine;
}

Result<SweepReport> SweepCells(const Home& home, const Result<TaskcellSettings>& settings,
                               const SweepOptions& options) {
  if (settings.ok() && settings->engine == EngineChoice::kNative)
    return Sweep(home, nullptr, options, FormerEngine);
  Result<probe::Endpoint> endpoint =
      settings.ok() ? ChooseHostEndpoint(settings.value()) : settings.error();
  if (!endpoint.ok()) {
    const EngineContainers unfound = Unfound(endpoint.error());
    return Sweep(home, &unfound, options);
  }
  const EngineContainers engine = ContainersOf(std::move(endpoint).value());
  return Sweep(home, &engine, options, FormerEngine);
}

}  // namespace

Result<SweepReport> SweepHome(const Home& home, const SweepOptions& options) {
  Result<ConfigValue> config = ReadConfig(home);
  const Result<TaskcellSettings> settings =
      config.ok() ? ReadTaskcellSettings(config.value()) : config.error();
  SweepReport report = TRY(SweepCells(home, settings, options));
  for (const std::string& path : attack::RemoveAbandoned(options.dry_run))
    report.expired.push_back(Text("what a killed process left at ", path));
  if (settings.ok()) ApplyRetention(home, settings->retention, options, report);
  return report;
}

}  // namespace taskcell::gateway

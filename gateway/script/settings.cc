#include "gateway/script/settings.h"

#include <utility>

#include "gateway/task/platform.h"

namespace taskcell::gateway {

cell::Engine ScriptSettings::planned_engine() const {
  return own.engine == EngineChoice::kNative ? cell::Engine::kNative : cell::Engine::kDocker;
}

Result<ScriptSettings> ReadScriptSettings(const ConfigValue& config) {
  ScriptSettings settings;
  settings.sandbox = TRY(ReadSandboxSettings(config));
  settings.own = TRY(ReadTaskcellSettings(config));
  settings.root = TRY(PinNativeRoot(settings.own));
  settings.sandbox.memory_bytes = kScriptMemoryBytes;
  settings.sandbox.pids = kScriptPids;
  settings.sandbox.cpu_millis = kScriptCpuMillis;
  settings.sandbox.tmp_bytes = kScriptTmpBytes;
  settings.sandbox.cpu_may_be_missing = settings.own.cpu_may_be_missing;
  return settings;
}

ScriptEngine FindScriptEngine(const Home& home, const ScriptSettings& settings,
                              Surroundings& surroundings) {
  ScriptEngine found;
  cell::Engine kind = settings.planned_engine();
  auto refused = [&](EngineStep step, Error error) {
    if (error.code == "stopped") {
      found.stopped = std::move(error);
    } else {
      found.refusal = EngineRefusal(step, error, kind, settings.sandbox.image);
    }
    return std::move(found);
  };
  Status platform = CheckPlatform();
  if (!platform.ok()) return refused(EngineStep::kFind, std::move(platform).error());
  Result<std::unique_ptr<probe::CellEngine>> made = surroundings.make_engine(settings.own);
  if (!made.ok()) return refused(EngineStep::kFind, std::move(made).error());
  std::unique_ptr<probe::CellEngine> engine = std::move(made).value();
  Status reachable = engine->CheckReachable();
  if (reachable.ok()) reachable = engine->CheckShared({home.path, surroundings.programs.init});
  if (!reachable.ok()) return refused(EngineStep::kAsk, std::move(reachable).error());
  kind = engine->kind();
  if (kind != cell::Engine::kNative) {
    Result<probe::ImageFacts> image = engine->CheckImage(settings.sandbox.image);
    if (!image.ok()) return refused(EngineStep::kImage, std::move(image).error());
  }
  if (engine->NeedsLimitsProbe()) {
    Status proven = surroundings.prove_limits(home, *engine, settings.sandbox);
    if (!proven.ok()) return refused(EngineStep::kProve, std::move(proven).error());
  }
  found.engine = std::move(engine);
  return found;
}

}  // namespace taskcell::gateway

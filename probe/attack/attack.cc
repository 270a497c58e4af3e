#include "probe/attack/attack.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/native/request.h"
#include "launcher/sys/signals.h"
#include "probe/attack/outside.h"
#include "probe/attack/trial.h"
#include "probe/cells/docker_engine.h"
#include "probe/cells/native_engine.h"
#include "probe/cells/program.h"
#include "probe/live/engine_setting.h"

namespace taskcell::attack {
namespace {

constexpr uint64_t kUsPerMs = 1000;

void AddNew(const std::vector<std::string>& from, std::vector<std::string>& to) {
  for (const std::string& text : from) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
  }
}

Result<Row> TryBoth(probe::CellEngine& engine, const live::Setting& setting, World& world,
                    const Payload& payload, Report& report) {
  Row row;
  row.payload = &payload;
  if (payload.way == Way::kRoot && engine.kind() != cell::Engine::kNative) {
    row.outside = row.inside = {EOPNOTSUPP, "an engine's root is an image, not a directory"};
    Judge(row);
    return row;
  }
  Result<Attempted> outside = TryOutside(world, payload);
  row.outside = outside.ok() ? std::move(outside).value()
                             : Attempted{EIO, Text("not tried: ", outside.error().text)};
  Trial trial = TRY(TryInside(engine, setting, world, payload));
  row.inside = std::move(trial.inside);
  row.changes = std::move(trial.changes);
  AddNew(trial.differences, report.differences);
  AddNew(trial.warnings, report.warnings);
  if (trial.free_millis) CountFree(row, *trial.free_millis);
  Judge(row);
  return row;
}

Result<World> MakeWorld() {
  std::string attacker = TRY(probe::FindProgram("taskcell-attacker"));
  return World::Make(attacker, TRY(native::MakeRunId()));
}

// Runs `attack(report)`, which may refuse, and fills in what every report has.
template <typename Body>
Report Reported(probe::CellEngine& engine, Body attack) {
  uint64_t start_us = sys::MonotonicUs();
  Result<Report> done = attack();
  Report report;
  if (done.ok()) {
    report = std::move(done).value();
  } else {
    report.refusal = std::move(done).error();
  }
  report.engine = engine.Name();
  report.wall_ms = (sys::MonotonicUs() - start_us) / kUsPerMs;
  return report;
}

}  // namespace

Result<std::vector<const Payload*>> Choose(const std::vector<std::string>& names) {
  std::vector<const Payload*> chosen;
  for (const std::string& name : names) {
    auto is_it = [&](const Payload& each) { return each.name == name || each.topic == name; };
    if (std::none_of(AllPayloads().begin(), AllPayloads().end(), is_it))
      return Error(Kind::kUsage,
                   Text("'", Printable(name), "' is no payload and no topic; see --list"));
  }
  for (const Payload& payload : AllPayloads()) {
    auto names_it = [&](const std::string& name) {
      return payload.name == name || payload.topic == name;
    };
    if (names.empty() || std::any_of(names.begin(), names.end(), names_it))
      chosen.push_back(&payload);
  }
  return chosen;
}

Report Attack(probe::CellEngine& engine, const live::Setting& setting, World& world,
              std::span<const Payload* const> payloads, const std::function<bool()>& stopped) {
  Report report;
  report.engine = engine.Name();
  for (const Payload* payload : payloads) {
    if (stopped()) {
      report.refusal = Error(Kind::kSystem, "the attack was stopped").Coded("stopped");
      break;
    }
    Result<Row> row = TryBoth(engine, setting, world, *payload, report);
    if (!row.ok()) {
      report.refusal = std::move(row).error();
      break;
    }
    report.rows.push_back(std::move(row).value());
  }
  return report;
}

Report AttackNative(std::span<const Payload* const> payloads,
                    const std::function<bool()>& stopped) {
  probe::NativeEngine engine;
  return Reported(engine, [&]() -> Result<Report> {
    World world = TRY(MakeWorld());
    live::Setting setting;
    bool is_root = ::geteuid() == 0 || ::getegid() == 0;
    setting.uid = setting.gid = is_root ? live::kNobody : live::kInsideId;
    setting.places.launch_program = TRY(probe::FindProgram("taskcell-launch"));
    setting.mounts = {world.tools()};
    return Attack(engine, setting, world, payloads, stopped);
  });
}

Report AttackEngine(const probe::Endpoint& endpoint, std::span<const Payload* const> payloads,
                    const std::function<bool()>& stopped) {
  probe::DockerEngine engine(endpoint);
  return Reported(engine, [&]() -> Result<Report> {
    World world = TRY(MakeWorld());
    std::string attacker = TRY(probe::FindProgram("taskcell-attacker"));
    live::EngineSetting made = TRY(live::PrepareEngine(engine, endpoint, attacker, false));
    made.setting.mounts = {world.tools()};
    Report report = Attack(engine, made.setting, world, payloads, stopped);
    Status removed = made.image.Remove();
    if (!removed.ok()) report.warnings.push_back(Text("left behind: ", removed.error().text));
    return report;
  });
}

}  // namespace taskcell::attack

#include "probe/attack/attack.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/native/request.h"
#include "launcher/sys/signals.h"
#include "probe/attack/company.h"
#include "probe/attack/exchanger.h"
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

// What all attacks of one report have in common.
struct Scene {
  probe::CellEngine& engine;
  const live::Setting& setting;
  World& world;
  const std::function<bool()>& stopped;
  Report& report;

  Result<Trial> Try(std::span<const Payload* const> payloads) const {
    if (stopped()) return Error(Kind::kSystem, "the attack was stopped").Coded("stopped");
    Trial trial = TRY(TryInside(engine, setting, world, payloads));
    AddNew(trial.differences, report.differences);
    AddNew(trial.warnings, report.warnings);
    return trial;
  }
};

Row Controlled(const World& world, const Payload& payload) {
  Row row;
  row.payload = &payload;
  Result<Attempted> outside = TryOutside(world, payload);
  row.outside = outside.ok() ? std::move(outside).value()
                             : Attempted{EIO, Text("not tried: ", outside.error().text)};
  return row;
}

Status TryAlone(const Scene& scene, Row& row) {
  Trial trial = TRY(scene.Try({&row.payload, 1}));
  row.inside = std::move(trial.inside.front());
  row.changes = std::move(trial.changes);
  if (trial.free_millis) CountFree(row, *trial.free_millis);
  Judge(row);
  return Ok();
}

Result<Row> TryOne(const Scene& scene, const Payload& payload) {
  Row row;
  row.payload = &payload;
  if (IsOfRoot(payload) && scene.engine.kind() != cell::Engine::kNative) {
    row.outside = row.inside = {EOPNOTSUPP, "an engine's root is an image, not a directory"};
    Judge(row);
    return row;
  }
  std::optional<Exchanger> exchanger;
  if (payload.way == Way::kExchanged) exchanger = TRY(scene.world.Exchange(payload.name));
  row = Controlled(scene.world, payload);
  TRY(TryAlone(scene, row));
  return row;
}

// What one cell shows of several is enough where it is what a cell answers; else each gets its own.
Result<std::vector<Row>> TryTogether(const Scene& scene, std::span<const Payload* const> payloads) {
  std::vector<Row> rows;
  for (const Payload* payload : payloads) rows.push_back(Controlled(scene.world, *payload));
  Trial together = TRY(scene.Try(payloads));
  const bool tells = TellsOfEach(together);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].inside = together.inside[i];
    if (tells && IsContained(*payloads[i], rows[i].inside.result)) {
      Judge(rows[i]);
    } else {
      TRY(TryAlone(scene, rows[i]));
    }
  }
  if (!tells) KeepEscapes(together, rows);
  return rows;
}

Status TryCell(const Scene& scene, std::span<const Payload* const> payloads) {
  std::vector<Row>& rows = scene.report.rows;
  if (payloads.size() == 1) {
    rows.push_back(TRY(TryOne(scene, *payloads.front())));
    return Ok();
  }
  for (Row& row : TRY(TryTogether(scene, payloads))) rows.push_back(std::move(row));
  return Ok();
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
  const Scene scene = {engine, setting, world, stopped, report};
  for (std::span<const Payload* const> of_one_cell : OneCellEach(payloads)) {
    Status tried = TryCell(scene, of_one_cell);
    if (tried.ok()) continue;
    report.refusal = std::move(tried).error();
    break;
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

#include "gateway/cli/doctor_command.h"

#include <algorithm>

#include "gateway/cli/doctor.h"
#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/task/host_surroundings.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"

namespace taskcell::gateway {
namespace {

std::string_view StateName(RowState state) {
  switch (state) {
    case RowState::kOk:
      return "ok";
    case RowState::kNote:
      return "note";
    case RowState::kWarn:
      return "warn";
    case RowState::kFail:
      return "fail";
  }
  return "";
}

std::string TableOf(const DoctorReport& report) {
  std::string table;
  std::size_t width = 0;
  for (const DoctorRow& row : report.rows) width = std::max(width, row.id.size());
  constexpr std::size_t kStateWidth = 6;
  for (const DoctorRow& row : report.rows) {
    std::string id = row.id;
    id.resize(width, ' ');
    std::string state(StateName(row.state));
    state.resize(kStateWidth, ' ');
    std::string lead = Text(id, "  ", state);
    for (std::string_view line : Split(row.text, '\n')) {
      table += Text(lead, Printable(line), "\n");
      lead.assign(lead.size(), ' ');
    }
  }
  return Text(table, report.refused ? "an" : "no",
              " agent whose sandbox is on would be refused now\n");
}

std::string Json(const Home& home, const DoctorReport& report) {
  JsonText json;
  json.Open('{').Key("home").String(home.path).Key("refused").Bool(report.refused);
  json.Key("rows").Open('[');
  for (const DoctorRow& row : report.rows) {
    json.Open('{').Key("id").String(row.id).Key("state").String(StateName(row.state));
    json.Key("text").String(row.text).Close('}');
  }
  json.Close(']').Close('}');
  return json.text() + "\n";
}

}  // namespace

int DoctorCommand(const std::string& home_option, bool json) {
  constexpr int kRefused = 1;
  constexpr int kUsage = 2;
  Result<std::unique_ptr<HostSurroundings>> host = HostSurroundings::Make();
  Result<Home> home =
      host.ok() ? OpenChosenHome(home_option, ProcessEnvironment()) : Result<Home>(host.error());
  if (!home.ok()) {
    Tell(Printable(home.error().text));
    return kUsage;
  }
  Surroundings surroundings = host.value()->For(-1);
  const DoctorReport report = Diagnose(home.value(), surroundings);
  if (!PrintOutput(json ? Json(home.value(), report) : TableOf(report))) return kUsage;
  return report.refused ? kRefused : 0;
}

}  // namespace taskcell::gateway

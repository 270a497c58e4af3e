#include "gateway/cli/doctor_command.h"

#include <algorithm>
#include <ctime>
#include <set>
#include <utility>

#include "gateway/cli/home_option.h"
#include "gateway/cli/output.h"
#include "gateway/config/accounts.h"
#include "gateway/config/agent_config.h"
#include "gateway/config/check_configuration.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/ledger/ledger.h"
#include "gateway/task/account_choice.h"
#include "gateway/task/admission.h"
#include "gateway/task/host_surroundings.h"
#include "gateway/task/native_program.h"
#include "launcher/base/json_text.h"
#include "launcher/base/text.h"
#include "probe/mounts/audit.h"

namespace taskcell::gateway {
namespace {

constexpr std::string_view kHostPaths =
    "channel replies, scheduled tasks and reminders of these agents still run on the host; their "
    "goal rounds always run Solo, never as a team; new mail does not wake them";

// What is not as the guide has it, since this engine is not the one it knows.
std::string_view DifferencesOf(cell::Engine engine) {
  switch (engine) {
    case cell::Engine::kNative:
      return "no image is used: a cell's programs are the host's, or those of [taskcell] root; no "
             "daemon, and a killed taskcell takes its cells with it";
    case cell::Engine::kPodman:
      return "/workspace has mode 1777, since Podman takes no owner for it; a container that "
             "`stopped` counts as exited";
    case cell::Engine::kDocker:
      break;
  }
  return "none";
}

class Doctor {
 public:
  Doctor(const Home& home, Surroundings& surroundings) : home_(home), surroundings_(surroundings) {}

  DoctorReport Look() {
    Configuration();
    Result<ConfigValue> config = ReadConfig(home_);
    if (config.ok()) {
      Engine(config.value());
      Accounts(config.value());
    }
    Agents();
    return std::move(report_);
  }

 private:
  void Add(std::string id, RowState state, std::string text) {
    report_.rows.push_back({std::move(id), state, std::move(text)});
  }

  void Configuration() {
    const std::vector<ConfigProblem> problems =
        CheckConfiguration(home_, surroundings_.environment);
    for (const ConfigProblem& problem : problems)
      Add("configuration", problem.fatal ? RowState::kFail : RowState::kWarn,
          Text(problem.file, ": ", problem.text));
    if (problems.empty()) Add("configuration", RowState::kOk, "valid");
  }

  void Engine(const ConfigValue& config) {
    Result<TaskcellSettings> own = ReadTaskcellSettings(config);
    Result<SandboxSettings> settings = ReadSandboxSettings(config);
    if (!own.ok() || !settings.ok()) return;  // told already
    Result<std::unique_ptr<probe::CellEngine>> engine = surroundings_.make_engine(own.value());
    Status reachable = engine.ok() ? engine.value()->CheckReachable() : engine.error();
    if (!reachable.ok())
      return Add("engine", RowState::kFail,
                 Text(reachable.error().code, ": ", reachable.error().text));
    probe::CellEngine& found = *engine.value();
    Add("engine", RowState::kOk, found.Name());
    Add("differences", RowState::kNote, std::string(DifferencesOf(found.kind())));
    if (found.kind() == cell::Engine::kNative) return Native(found, settings.value());
    Result<probe::ImageFacts> image = found.CheckImage(settings->image);
    if (!image.ok())
      return Add("image", RowState::kFail, Text(image.error().code, ": ", image.error().text));
    Add("image", RowState::kOk, Text(settings->image, " is on this machine"));
    if (!found.NeedsLimitsProbe())
      return Add("limits", RowState::kOk,
                 "the engine is rootful; each cell is measured all the same");
    Status proven = surroundings_.prove_limits(home_, found, settings.value());
    if (proven.ok()) {
      Add("limits", RowState::kOk, "the engine is rootless and enforces them, as a cell showed");
    } else {
      Add("limits", RowState::kFail, Text(proven.error().code, ": ", proven.error().text));
    }
  }

  // What the launcher cannot limit it refuses when a cell is made, which admission does not see.
  void Native(probe::CellEngine& engine, const SandboxSettings& settings) {
    Status proven = surroundings_.prove_limits(home_, engine, settings);
    if (proven.ok()) {
      Add("limits", RowState::kOk, "the launcher sets them, as a cell without a job showed");
      return;
    }
    native_refusal_ = Text(proven.error().code, ": ", proven.error().text);
    Add("limits", RowState::kFail, native_refusal_);
  }

  void Accounts(const ConfigValue& config) {
    Result<std::vector<Account>> accounts =
        LoadAccounts(config, home_.fd.get(), surroundings_.environment);
    if (!accounts.ok()) return;  // told already
    std::vector<AccountState> states;
    Result<std::optional<Ledger>> ledger = Ledger::OpenExisting(home_.fd.get(), home_.path);
    if (!ledger.ok()) {
      Add("ledger", RowState::kFail, ledger.error().text);
    } else if (ledger.value().has_value()) {
      Result<std::vector<AccountState>> read = ledger.value()->Accounts();
      if (read.ok()) states = std::move(read).value();
    }
    for (const Account& account : accounts.value()) {
      const std::string id = Text("account ", Printable(account.id));
      if (!account.unavailable.empty()) {
        Add(id, RowState::kWarn, account.unavailable);
        continue;
      }
      Result<std::vector<Account>> ready =
          OrderAccounts({account}, states, RotationStrategy::kPriority, std::time(nullptr));
      if (ready.ok()) {
        Add(id, RowState::kOk, Text("for ", Printable(account.provider)));
      } else {
        Add(id, RowState::kWarn, ready.error().text);
      }
    }
  }

  void Agents() {
    Result<std::vector<ListedAgent>> agents = ListAgents(home_);
    if (!agents.ok()) return;  // told already
    std::set<std::string> on;
    std::set<std::string> without_network;
    for (const ListedAgent& agent : agents.value()) {
      if (!agent.config.ok()) {
        Unreadable(agent);
        continue;
      }
      if (!agent.config->sandbox_enabled) continue;
      on.insert(agent.config->name);
      if (!agent.config->network_access) without_network.insert(agent.config->name);
      Agent(agent);
    }
    if (!without_network.empty())
      Add("network", RowState::kWarn,
          Text(Joined(without_network),
               ": [container] network_access = false, so the AI cannot "
               "reach its provider and every task is refused; set it to true"));
    if (on.empty()) {
      Add("agents", RowState::kNote, "none has [container] sandbox_enabled = true");
      return;
    }
    Add("agents", RowState::kNote, Text("the sandbox is on for ", Joined(on)));
    Add("host paths", RowState::kNote, Text(Joined(on), ": ", kHostPaths));
    Hatch();
  }

  static std::string Joined(const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += Text(text.empty() ? "" : ", ", name);
    return text;
  }

  // Whether its sandbox is on is not known, so each of its tasks is refused.
  void Unreadable(const ListedAgent& agent) {
    const Error& error = agent.config.error();
    report_.refused = true;
    Add(Text("agent ", Printable(agent.directory_name)), RowState::kFail,
        Text("would be refused now: ", error.code, ": ", error.text));
  }

  // What becomes of a task that the sandbox refuses.
  void Hatch() {
    Result<ConfigValue> config = ReadConfig(home_);
    if (config.ok() && ReadEscapeHatches(config.value()).task)
      return Add("refused tasks", RowState::kWarn,
                 "run on the host, without isolation: when_unavailable = \"run_unsandboxed\"");
    Add("refused tasks", RowState::kNote, "fail; they are not run without isolation");
  }

  void Agent(const ListedAgent& agent) {
    const std::string id = Text("agent ", agent.config->name);
    Result<Admission> admission = Admit(home_, agent.config.value(), surroundings_);
    std::string sees = Mounts(agent);
    const std::string why = WhyRefused(admission);
    if (!why.empty()) {
      report_.refused = true;
      return Add(id, RowState::kFail, Text("would be refused now: ", why, "\n", sees));
    }
    const bool is_open = admission->own_settings.open_egress;
    Add(id, is_open ? RowState::kWarn : RowState::kOk,
        Text(RuntimeId(admission->runtime), ", model ", Printable(admission->model), ", account ",
             Printable(admission->payers.front().account),
             "\negress: ", Way(admission->payers.front(), is_open), "\n", sees));
  }

  static std::string Way(const Payer& payer, bool is_open) {
    std::string way = Text(
        payer.route.upstream.Url(), is_open ? "" : " only", ", through the broker",
        payer.route.uplink.proxy.empty() ? "" : Text(" and ", Printable(payer.route.uplink.proxy)),
        payer.route.overridden ? " (overridden)" : "");
    if (is_open)
      way +=
          "; besides that open: whatever the engine's bridge reaches, this host's services too "
          "([taskcell] egress = \"provider\" closes it)";
    return way;
  }

  // By admission, or by what only the cell itself would show; "": it would not be.
  std::string WhyRefused(const Result<Admission>& admission) const {
    if (!admission.ok()) return Text(admission.error().code, ": ", admission.error().text);
    if (!native_refusal_.empty()) return native_refusal_;
    if (admission->engine->kind() != cell::Engine::kNative) return "";
    Status program = CheckNativeProgram(admission.value());
    return program.ok() ? "" : Text(program.error().code, ": ", program.error().text);
  }

  // What a cell would get of the agent's directory.
  std::string Mounts(const ListedAgent& agent) {
    probe::audit::AuditRequest request;
    request.directory = Text(home_.path, "/agents/", agent.directory_name);
    request.policy = probe::audit::Policy::kAgent;
    Result<probe::audit::Report> audit = probe::audit::Audit(request);
    if (!audit.ok()) return Text("sees: could not be judged: ", audit.error().text);
    std::string safe;
    std::string skipped;
    std::size_t inside = 0;
    for (const probe::audit::EntryReport& entry : audit->entries) {
      inside += entry.notes.size();
      if (entry.verdict == mounts::Verdict::kSafe)
        safe += Text(safe.empty() ? "" : " ", entry.name);
      if (entry.verdict == mounts::Verdict::kSkip)
        skipped += Text(skipped.empty() ? "" : ", ", entry.name, " (", entry.reason, ")");
    }
    std::string text = Text("sees: ", safe.empty() ? "nothing of its directory" : safe);
    if (!skipped.empty()) text += Text("\nskipped: ", skipped);
    if (inside > 0 || !audit->findings.empty())
      text +=
          Text("\n", inside + audit->findings.size(),
               " findings: taskcell-probe mounts --policy agent ", Printable(request.directory));
    return text;
  }

  const Home& home_;
  Surroundings& surroundings_;
  DoctorReport report_;
  std::string native_refusal_;  // of every cell of the native engine; empty: none
};

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

DoctorReport Diagnose(const Home& home, Surroundings& surroundings) {
  return Doctor(home, surroundings).Look();
}

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

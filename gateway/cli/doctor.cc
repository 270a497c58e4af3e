#include "gateway/cli/doctor.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <set>
#include <utility>

#include "gateway/config/accounts.h"
#include "gateway/config/agent_config.h"
#include "gateway/config/check_configuration.h"
#include "gateway/config/sandbox_settings.h"
#include "gateway/egress/routes.h"
#include "gateway/ledger/audit.h"
#include "gateway/ledger/ledger.h"
#include "gateway/runtimes/plan_job.h"
#include "gateway/script/plan_script.h"
#include "gateway/script/settings.h"
#include "gateway/task/account_choice.h"
#include "gateway/task/admission.h"
#include "gateway/task/host_surroundings.h"
#include "gateway/task/native_program.h"
#include "launcher/base/text.h"
#include "probe/cells/shared_host.h"
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

// "; its login ends ..., and what then": nothing for an account with a key.
std::string LoginText(const Account& account) {
  if (!account.login.has_value()) return "";
  const OauthLogin& login = *account.login;
  return Text("; its login ends ", Rfc3339(MomentOf(std::chrono::seconds(login.expires_at))),
              login.CanBeRenewed() ? std::string(" and is renewed for the next task after that")
                                   : Text(" and is not renewed: ", login.not_renewed),
              account.provider == "openai" ? Text("; its requests go to ", kChatGptAddress) : "");
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
    if (config.ok()) Scripts(config.value());
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
    if (reachable.ok()) reachable = Container(*engine.value());
    if (!reachable.ok()) return Down(reachable.error(), own.value(), settings->image);
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

  // What is wrong with the engine is said once.
  void Down(const Error& error, const TaskcellSettings& own, const std::string& image) {
    is_down_ = true;
    Add("engine", RowState::kFail, Text(error.code, ": ", error.text));
    if (own.engine != EngineChoice::kNative)
      Add("image", RowState::kWarn,
          Text(image, ": whether it is on this machine can't be told while the engine is down"));
  }

  // Native cells are of the container that this is.
  Status Container(probe::CellEngine& engine) {
    const std::string marker = probe::ContainerMarker();
    if (marker.empty() || engine.kind() == cell::Engine::kNative) return Ok();
    Status shared = engine.CheckShared({home_.path, surroundings_.programs.init});
    if (shared.ok())
      Add("container", RowState::kNote,
          Text("this is one (", marker,
               "), with the socket, the home, the pid namespace and the cgroups of the host"));
    return shared;
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

  // Whether a script would run now, and what becomes of one that would not. No task is refused for
  // it.
  void Scripts(const ConfigValue& config) {
    const std::string why = WhyNoScripts(config);
    if (!why.empty()) Add("scripts", RowState::kWarn, Text("would be refused now: ", why));
    const bool is_open = ReadEscapeHatches(config).script;
    Add("refused scripts", is_open ? RowState::kWarn : RowState::kNote,
        is_open ? "run on the host, without isolation: script_when_unavailable = "
                  "\"run_unsandboxed\""
                : "are not run");
  }

  std::string WhyNoScripts(const ConfigValue& config) {
    auto told = [](const ScriptRefusal& refusal) { return Text(refusal.code, ": ", refusal.why); };
    Result<ScriptSettings> settings = ReadScriptSettings(config);
    if (!settings.ok()) return told(InvalidScriptConfig(settings.error()));
    const ScriptEngine found = FindScriptEngine(home_, settings.value(), surroundings_);
    if (found.refusal.has_value()) {
      const std::string_view code = found.refusal->code;
      const bool is_told = is_down_ && (code == "no_runtime" || code == "runtime_unhealthy");
      return is_told ? Text(code, ": see `engine`") : told(*found.refusal);
    }
    if (found.stopped.has_value()) return found.stopped->text;
    const bool is_native = found.engine->kind() == cell::Engine::kNative;
    if (is_native && !native_refusal_.empty()) return native_refusal_;
    std::string text = "run in cells of their own, without a network";
    if (is_native) text += Text(": ", Languages(settings->root));
    Add("scripts", RowState::kOk, text);
    return "";
  }

  // Those whose interpreter a native cell has, and those it has not.
  static std::string Languages(const NativeRoot& root) {
    std::string there;
    std::string missing;
    for (ScriptLanguage language :
         {ScriptLanguage::kPython, ScriptLanguage::kBash, ScriptLanguage::kJavascript}) {
      std::string& list = HasInterpreter(root, language) ? there : missing;
      list += Text(list.empty() ? "" : ", ", LanguageName(language));
    }
    if (there.empty()) there = "none, since no interpreter is there";
    return missing.empty() ? there : Text(there, "\nwithout an interpreter: ", missing);
  }

  void Accounts(const ConfigValue& config) {
    Result<std::vector<Account>> accounts =
        LoadAccounts(config, home_.fd.get(), surroundings_.environment);
    if (!accounts.ok()) return;  // told already
    const int64_t now = std::time(nullptr);
    Result<AccountHistory> history = ReadAccountHistory(home_, now);
    if (!history.ok()) Add("ledger", RowState::kFail, history.error().text);
    const AccountHistory known = history.ok() ? std::move(history).value() : AccountHistory();
    for (const Account& account : accounts.value()) {
      const std::string id = Text("account ", Printable(account.id));
      if (!account.unavailable.empty()) {
        Add(id, RowState::kWarn, account.unavailable);
        continue;
      }
      Result<std::vector<Account>> ready =
          OrderAccounts({account}, known, RotationStrategy::kPriority, now);
      if (ready.ok()) {
        Add(id, RowState::kOk,
            Text("for ", Printable(account.provider), LoginText(account), Paid(account, known)));
      } else {
        Add(id, RowState::kWarn, ready.error().text);
      }
      if (account.budget_cents.has_value()) budgets_[account.id] = *account.budget_cents;
    }
  }

  static std::string Paid(const Account& account, const AccountHistory& history) {
    if (!account.budget_cents.has_value()) return "";
    constexpr int64_t kMicrocents = 1'000'000;
    return Text(", ", SpentBy(account.id, history.spending) / kMicrocents, " of ",
                *account.budget_cents, " cents spent this month");
  }

  // A budget holds only where it is known what the model costs, and what the agent takes of it.
  void Budget(const Admission& admission, const Payer& payer) {
    auto budget = budgets_.find(payer.account);
    if (budget == budgets_.end()) return;
    const std::string begin = Text("monthly_budget_cents (", budget->second, ") of account `",
                                   Printable(budget->first), "` cannot be enforced: ");
    if (admission.credential_inside) {
      Warn("budget",
           Text(begin, FamilyName(admission.runtime), " goes through a tunnel that nobody reads"));
      return;
    }
    for (const std::string& model : ModelsFor(admission.runtime, admission.model)) {
      if (admission.own_settings.prices.Of(admission.provider, model).has_value()) continue;
      Warn("budget", Text(begin, "[taskcell.prices] has no price for model ", Printable(model)));
    }
  }

  // What holds for several agents is said once.
  void Warn(std::string id, std::string text) {
    for (const DoctorRow& row : report_.rows)
      if (row.id == id && row.text == text) return;
    Add(std::move(id), RowState::kWarn, std::move(text));
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
    for (const Payer& payer : admission->payers) Budget(admission.value(), payer);
    const bool is_open = admission->own_settings.open_egress;
    Add(id, is_open ? RowState::kWarn : RowState::kOk,
        Text(RuntimeId(admission->runtime), ", model ", Printable(admission->model), ", account ",
             Printable(admission->payers.front().account),
             agent.config->exports ? "\nexports: files of /workspace/out, to exports/ of the home"
                                   : "",
             "\negress: ", Way(admission.value(), is_open), "\n", sees));
  }

  static std::string Way(const Admission& admission, bool is_open) {
    const Payer& payer = admission.payers.front();
    std::string tunnels;
    for (const AllowedHost& host : admission.tunnel_hosts)
      tunnels += Text(tunnels.empty() ? "" : ", ", host.Spelling());
    const bool only = !is_open && tunnels.empty();
    std::string way =
        admission.credential_inside
            ? std::string("with the credential inside the cell")
            : Text(payer.route.upstream.Url(), only ? " only" : "", ", through the broker",
                   payer.route.uplink.proxy.empty()
                       ? ""
                       : Text(" and ", Printable(payer.route.uplink.proxy)),
                   payer.route.overridden ? " (overridden)" : "");
    if (!tunnels.empty()) way += Text("; by tunnels: ", tunnels, is_open ? "" : " only");
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
  bool is_down_ = false;                     // the engine; its row says how
  std::map<std::string, uint64_t> budgets_;  // of usable accounts, by id
  std::string native_refusal_;               // of every cell of the native engine; empty: none
};

}  // namespace

DoctorReport Diagnose(const Home& home, Surroundings& surroundings) {
  return Doctor(home, surroundings).Look();
}

}  // namespace taskcell::gateway

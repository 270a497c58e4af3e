#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cgroup/advice.h"
#include "probe/rules/report.h"

namespace taskcell::probe {
namespace {

using cgroup::DropIn;
using cgroup::Surroundings;

void AddManager(const HostFacts& facts, Report& report) {
  Finding finding{"systemd.manager", Verdict::kReady, "systemd is the service manager"};
  if (!facts.systemd.version.empty()) finding.reason += Text(", version ", facts.systemd.version);
  std::optional<uint64_t> version = ParseUnsigned(facts.systemd.version);
  constexpr uint64_t kFirstWithCpuset = 244;
  if (version && *version < kFirstWithCpuset) {
    finding.verdict = Verdict::kNote;
    finding.reason += Text("; it cannot delegate cpuset (", kFirstWithCpuset,
                           " and later can), which taskcell does not need");
  }
  report.findings.push_back(std::move(finding));
}

void AddUserManager(const HostFacts& facts, Report& report) {
  const Surroundings& around = facts.cgroups.around;
  if (around.uid == 0) return;
  std::string user = ShellWord(around.UserName());
  std::string unit = Text("user@", around.uid, ".service");
  Finding finding{"systemd.user-manager",
                  Verdict::kReady,
                  Text(unit, " runs"),
                  Who::kNone,
                  "",
                  {{facts.systemd.delegated_path, facts.systemd.delegated}}};
  if (!facts.systemd.user_manager_runs) {
    finding.verdict = Verdict::kNote;
    finding.reason = Text(unit, " does not run, so nothing is delegated to the user");
    finding.who = Who::kUser;
    finding.fix = Text("open a real login session (ssh, machinectl shell ", user,
                       "@), or as administrator: loginctl enable-linger ", user);
  }
  report.findings.push_back(std::move(finding));

  Finding linger{"systemd.linger",
                 Verdict::kReady,
                 "the user manager runs without a login",
                 Who::kNone,
                 "",
                 {{"/var/lib/systemd/linger", facts.systemd.lingers ? "yes" : "no"}}};
  if (!facts.systemd.lingers) {
    linger.verdict = Verdict::kNote;
    linger.reason =
        "no lingering: at the last logout the user manager ends and its cells with it; limits are "
        "not "
        "touched by that";
    linger.who = Who::kAdmin;
    linger.fix = Text("as administrator: loginctl enable-linger ", user);
  }
  report.findings.push_back(std::move(linger));
}

void AddRuntimeDirectory(const HostFacts& facts, Report& report) {
  const Surroundings& around = facts.cgroups.around;
  if (around.uid == 0) return;
  std::string directory = Text("/run/user/", around.uid);
  Finding finding{"systemd.runtime-directory", Verdict::kReady,
                  Text(directory, " and its bus are there")};
  finding.found.push_back({directory, around.runtime_directory ? "exists" : "missing"});
  finding.found.push_back({directory + "/bus", around.user_bus ? "exists" : "missing"});
  auto note = [&](std::string reason, Who who, std::string fix) {
    finding.verdict = Verdict::kNote;
    finding.reason = std::move(reason);
    finding.who = who;
    finding.fix = std::move(fix);
  };
  if (!around.runtime_directory)
    note(Text(directory, " is missing: this is no login session of the user's own"), Who::kUser,
         "open a real login session (ssh, machinectl shell)");
  else if (!around.user_bus)
    note(Text("the user manager has no D-Bus socket (", directory, "/bus)"), Who::kAdmin,
         "as administrator: apt install dbus-user-session; then log in again");
  else if (facts.live && facts.live->runtime_directory != directory)
    note(Text("XDG_RUNTIME_DIR is '", Printable(facts.live->runtime_directory), "', not ",
              directory, ": systemctl --user and systemd-run --user will not find the manager"),
         Who::kUser, Text("export XDG_RUNTIME_DIR=", directory));
  report.findings.push_back(std::move(finding));
}

// What user@.service is configured to hand over, against what it has: a drop-in takes effect only
// after daemon-reload and a new start of the manager.
void AddDelegate(const HostFacts& facts, Report& report) {
  const Unit& manager = facts.systemd.user_manager;
  if (!manager.exists() || facts.cgroups.around.uid == 0) return;
  Delegation configured = DelegationOf(manager);
  Finding finding{"systemd.delegate", Verdict::kReady,
                  "user@.service delegates what taskcell limits, and has it"};
  for (const std::string& file : manager.files) finding.found.push_back({file, "read"});
  std::string asked;
  std::string not_live;
  std::vector<std::string_view> live = Words(facts.systemd.delegated);
  for (cgroup::Controller each : cgroup::kControllers) {
    std::string_view name = Name(each);
    bool has = std::find(live.begin(), live.end(), name) != live.end();
    if (!configured.Holds(name)) asked += Text(asked.empty() ? "" : ", ", name);
    if (configured.Holds(name) && !has) not_live += Text(not_live.empty() ? "" : ", ", name);
  }
  std::string again = Text("log out of every session and in again (or: systemctl restart user@",
                           facts.cgroups.around.uid, ".service)");
  if (!asked.empty()) {
    finding.verdict = Verdict::kNote;
    finding.reason = Text("Delegate= of user@.service does not name ", asked);
    finding.who = Who::kAdmin;
    finding.fix = DropIn("user@.service", "Delegate=cpu cpuset io memory pids", again);
  } else if (!not_live.empty() && facts.systemd.user_manager_runs &&
             report.mode == cgroup::Mode::kV2) {
    finding.verdict = Verdict::kNote;
    finding.reason = Text("Delegate= of user@.service names ", not_live,
                          ", but the running manager does not have it: it was started before");
    finding.who = Who::kAdmin;
    finding.fix = Text("as administrator: systemctl daemon-reload; then ", again);
  }
  report.findings.push_back(std::move(finding));
}

struct Hardening {
  std::string_view key;
  std::string_view effect;
  Verdict verdict;
};

constexpr Hardening kHardenings[] = {
    {"RestrictNamespaces", "no namespaces can be made (EPERM)", Verdict::kNot},
    {"RestrictSUIDSGID", "openat2 answers ENOSYS", Verdict::kNot},
    {"ProtectControlGroups", "the cgroup file system is read-only", Verdict::kNot},
    {"NoNewPrivileges", "newuidmap cannot gain its privilege", Verdict::kNote},
    {"PrivateUsers", "the unit is in a user namespace, so subordinate ids do not reach into it",
     Verdict::kNote},
    {"ProtectKernelTunables",
     "/proc/sys is covered, so the kernel shows no new /proc in a user namespace", Verdict::kNot},
};

void AddHardening(const HostFacts& facts, Report& report) {
  const std::optional<Unit>& own = facts.systemd.own;
  if (!own || !own->exists()) return;
  Finding finding{"systemd.hardening", Verdict::kReady,
                  Text("no setting of ", Printable(own->name), " is in the way")};
  std::string effects;
  std::string settings;
  for (const Hardening& each : kHardenings) {
    std::string value = BlockingSetting(facts, each.key);
    if (value.empty()) continue;
    finding.verdict = std::max(finding.verdict, each.verdict);
    finding.found.push_back({own->files.back(), Text(each.key, '=', value)});
    effects += Text(effects.empty() ? "" : "; ", each.key, "=: ", each.effect);
    settings += Text(settings.empty() ? "" : "\\n", each.key, "=no");
  }
  if (finding.verdict != Verdict::kReady) {
    finding.reason = Text("settings of ", Printable(own->name), " are in the way: ", effects);
    finding.who = Who::kAdmin;
    finding.fix = DropIn(own->name, settings, Text("systemctl restart ", ShellWord(own->name)));
  }
  report.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeSystemd(const HostFacts& facts, Report& report) {
  if (!facts.cgroups.around.systemd) return;
  AddManager(facts, report);
  AddUserManager(facts, report);
  AddRuntimeDirectory(facts, report);
  AddDelegate(facts, report);
  AddHardening(facts, report);
}

}  // namespace taskcell::probe

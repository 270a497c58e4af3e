#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cgroup/advice.h"
#include "probe/rules/report.h"

namespace taskcell::probe {
namespace {

using cgroup::DelegateCommand;
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
    finding.who = Who::kAdmin;
    finding.fix =
        Text("for engines that want cpuset: upgrade systemd to ", kFirstWithCpuset, " or later");
  }
  report.findings.push_back(std::move(finding));
}

// The file that switches Delegate= off for a user's service manager that does not run: without a
// cgroup of its own it ends at its first step, "init.scope: Permission denied". Else "".
std::string SwitchedOffIn(const HostFacts& facts) {
  if (facts.cgroups.mode != cgroup::Mode::kV2 || facts.systemd.user_manager_runs) return {};
  return DelegationOf(facts.systemd.user_manager).off_in;
}

std::string SwitchedOff(const HostFacts& facts, const std::string& file) {
  return Text("Delegate= is switched off for user@", facts.cgroups.around.uid, ".service in ",
              Printable(file),
              ", so the user's service manager cannot start (init.scope: Permission "
              "denied)");
}

std::string SwitchOn(const Surroundings& around) {
  return Text("as administrator: ", DelegateCommand(around), "; then log in again");
}

// Whether the user has logged in, and still the manager does not run.
bool ManagerFailed(const HostFacts& facts) {
  return facts.cgroups.around.runtime_directory && !facts.systemd.user_manager_runs &&
         facts.cgroups.mode == cgroup::Mode::kV2;
}

void AddUserManager(const HostFacts& facts, Report& report) {
  const Surroundings& around = facts.cgroups.around;
  if (around.uid == 0) return;
  std::string user = ShellWord(around.UserName());
  std::string unit = Text("user@", around.uid, ".service");
  Finding finding{"systemd.user-manager", Verdict::kReady, Text(unit, " runs"), Who::kNone, "", {}};
  if (!facts.systemd.delegated_path.empty())
    finding.found.push_back({facts.systemd.delegated_path, facts.systemd.delegated});
  if (!facts.systemd.user_manager_runs) {
    std::string off_in = SwitchedOffIn(facts);
    finding.verdict = Verdict::kNote;
    finding.reason = Text(unit, " does not run, so nothing is delegated to the user");
    finding.who = Who::kUser;
    finding.fix = Text("open a real login session (ssh, machinectl shell ", user,
                       "@), or as administrator: loginctl enable-linger ", user);
    if (!off_in.empty() || ManagerFailed(facts)) finding.who = Who::kAdmin;
    if (!off_in.empty()) {
      finding.reason = SwitchedOff(facts, off_in);
      finding.fix = SwitchOn(around);
    } else if (ManagerFailed(facts)) {
      finding.reason = Text("the user has logged in, but ", unit, " does not run: it failed");
      finding.fix = Text("as administrator: systemctl status ", unit, " and journalctl -u ", unit,
                         " tell why");
    }
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
  else if (!around.user_bus && ManagerFailed(facts))
    note(Text("the user's service manager does not run, so there is no ", directory, "/bus"),
         Who::kAdmin, "see the row systemd.user-manager");
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
  std::string off_in = SwitchedOffIn(facts);
  std::string again = Text("log out of every session and in again (or: systemctl restart user@",
                           facts.cgroups.around.uid, ".service)");
  if (report.mode != cgroup::Mode::kV2) {
    finding.verdict = Verdict::kNote;
    finding.reason =
        "user@.service hands over the unified hierarchy alone, and memory, pids and cpu are not on "
        "it here: the rows of the limits say what to do";
  } else if (!off_in.empty()) {
    finding.verdict = Verdict::kNote;
    finding.reason = SwitchedOff(facts, off_in);
    finding.who = Who::kAdmin;
    finding.fix = SwitchOn(facts.cgroups.around);
  } else if (!asked.empty()) {
    finding.verdict = Verdict::kNote;
    finding.reason = Text("Delegate= of user@.service does not name ", asked);
    finding.who = Who::kAdmin;
    finding.fix =
        Text("as administrator: ", DelegateCommand(facts.cgroups.around), "; then ", again);
  } else if (!not_live.empty() && facts.systemd.user_manager_runs) {
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
  std::string_view trial;  // that would fail if it was in force, "" where none tells
};

constexpr Hardening kHardenings[] = {
    {"RestrictNamespaces", "namespaces that a cell needs cannot be made (EPERM)", Verdict::kNot,
     "user-namespace"},
    {"RestrictSUIDSGID", "openat2 answers ENOSYS, and a slower walk serves for it", Verdict::kNote,
     "openat2"},
    {"ProtectControlGroups", "the cgroup file system is read-only", Verdict::kNot, ""},
    {"NoNewPrivileges", "newuidmap cannot gain its privilege", Verdict::kNote, ""},
    {"PrivateUsers", "the unit is in a user namespace, so subordinate ids do not reach into it",
     Verdict::kNote, ""},
    {"ProtectKernelTunables",
     "/proc/sys is covered, so the kernel shows no new /proc in a user namespace", Verdict::kNot,
     "proc"},
};

// What shows that a setting of the unit is not in force on this process, as where the file was
// changed after the unit's start; "" where nothing does.
std::string Disproof(const HostFacts& facts, const Hardening& hardening) {
  const std::vector<cgroup::Chain>& chains = facts.cgroups.chains;
  if (hardening.key == "ProtectControlGroups") {
    bool writable = std::any_of(chains.begin(), chains.end(), [](const cgroup::Chain& chain) {
      return !chain.hierarchy.mount_point.empty() && !chain.hierarchy.read_only;
    });
    return writable ? "a cgroup file system is writable" : "";
  }
  const Trial* trial = facts.live ? facts.live->Find(hardening.trial) : nullptr;
  if (trial == nullptr || trial->outcome != Outcome::kWorks) return {};
  std::string works = Text("the trial of ", hardening.trial, " works");
  if (hardening.key != "RestrictNamespaces") return works;
  // The trial makes these two kinds; it says nothing of others.
  std::vector<std::string_view> kinds = ForbiddenNamespaces(*facts.systemd.own);
  bool tried = std::any_of(kinds.begin(), kinds.end(),
                           [](std::string_view kind) { return kind == "user" || kind == "mnt"; });
  return tried ? works : "";
}

void AddHardening(const HostFacts& facts, Report& report) {
  const std::optional<Unit>& own = facts.systemd.own;
  if (!own || !own->exists()) return;
  Finding finding{"systemd.hardening", Verdict::kReady,
                  Text("no setting of ", Printable(own->name), " is in the way")};
  std::string effects;
  std::string settings;
  for (const Hardening& each : kHardenings) {
    if (BlockingSetting(facts, each.key).empty()) continue;
    std::string disproof = Disproof(facts, each);
    finding.verdict = std::max(finding.verdict, disproof.empty() ? each.verdict : Verdict::kNote);
    finding.found.push_back(BlockingEvidence(facts, each.key));
    effects += Text(effects.empty() ? "" : "; ", each.key, "=: ",
                    disproof.empty() ? std::string(each.effect)
                                     : Text("not in force on this process (", disproof,
                                            "), but may be after a restart"));
    settings += Text(settings.empty() ? "" : "\\n", each.key, "=no");
  }
  if (finding.verdict != Verdict::kReady) {
    finding.reason =
        Text("settings of ", Printable(own->name),
             finding.verdict == Verdict::kNot ? " are in the way: " : " to know of: ", effects);
    finding.who = Who::kAdmin;
    finding.fix = DropIn(own->name, settings, Text("systemctl restart ", ShellWord(own->name)));
  }
  report.findings.push_back(std::move(finding));
}

}  // namespace

void BlameUserManager(const HostFacts& facts, cgroup::Controller controller,
                      cgroup::Diagnosis& diagnosis) {
  const cgroup::Chain* chain = facts.cgroups.Find(Name(controller));
  if (chain == nullptr || diagnosis.fault != cgroup::Fault::kNotDelegated) return;
  if (cgroup::SettingOf({*chain, facts.cgroups.around, controller}) != cgroup::Setting::kSession)
    return;
  std::string off_in = SwitchedOffIn(facts);
  if (off_in.empty()) return;
  diagnosis.reason = Text("own cgroup is not delegated: ", SwitchedOff(facts, off_in));
  diagnosis.who = Who::kAdmin;
  diagnosis.fix = SwitchOn(facts.cgroups.around);
}

void JudgeSystemd(const HostFacts& facts, Report& report) {
  if (!facts.cgroups.around.systemd) return;
  AddManager(facts, report);
  AddUserManager(facts, report);
  AddRuntimeDirectory(facts, report);
  AddDelegate(facts, report);
  AddHardening(facts, report);
}

}  // namespace taskcell::probe

#include <sys/stat.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/cgroup/advice.h"
#include "probe/facts/trials.h"
#include "probe/rules/report.h"
#include "probe/rules/subid_rules.h"

namespace taskcell::probe {
namespace {

constexpr std::string_view kProfile =
    "printf '%s\\n' 'abi <abi/4.0>,' 'include <tunables/global>' 'profile taskcell "
    "/usr{,/local}/bin/taskcell-{launch,probe} flags=(unconfined) { userns, }' "
    ">/etc/apparmor.d/taskcell && apparmor_parser -r /etc/apparmor.d/taskcell";

Evidence Seen(const FileFacts& files, std::string_view path) {
  return {std::string(path), std::string(files.Line(path))};
}

// What the files say of user namespaces, in the order in which the kernel asks.
Finding UsernsFromFiles(const HostFacts& facts) {
  const FileFacts& files = facts.files;
  Finding finding{"userns", Verdict::kReady, "user namespaces may be made"};
  auto no = [&](Verdict verdict, std::string reason, Who who, std::string fix) {
    finding.verdict = verdict;
    finding.reason = std::move(reason);
    finding.who = who;
    finding.fix = std::move(fix);
    return finding;
  };
  if (!files.File(kMaxUserNamespaces).present()) {
    bool absent = files.File(kMaxUserNamespaces).absent();
    finding.found.push_back(
        {std::string(kMaxUserNamespaces), absent ? "missing" : "cannot be read"});
    return no(Verdict::kUnknown, Text(kMaxUserNamespaces, " is missing or cannot be read"),
              Who::kNone, "");
  }
  finding.found.push_back(Seen(files, kMaxUserNamespaces));
  std::optional<uint64_t> most = files.Number(kMaxUserNamespaces);
  if (!most)
    return no(Verdict::kUnknown, Text(kMaxUserNamespaces, " holds no number"), Who::kNone, "");
  if (*most == 0)
    return no(
        Verdict::kNot, "user namespaces are switched off: user.max_user_namespaces is 0",
        Who::kAdmin,
        "as administrator: sysctl -w user.max_user_namespaces=15000, and the same in a file of "
        "/etc/sysctl.d");
  bool root = facts.cgroups.around.uid == 0;
  if (!root && files.File(kUnprivilegedClone).present()) {
    finding.found.push_back(Seen(files, kUnprivilegedClone));
    if (files.Number(kUnprivilegedClone) == 0U)
      return no(Verdict::kNot,
                "user namespaces are switched off for ordinary users: "
                "kernel.unprivileged_userns_clone is 0",
                Who::kAdmin,
                "as administrator: sysctl -w kernel.unprivileged_userns_clone=1, and the same in a "
                "file of /etc/sysctl.d");
  }
  if (!root && files.Number(kAppArmorRestriction) == 1U) {
    finding.found.push_back(Seen(files, kAppArmorRestriction));
    finding.found.push_back(Seen(files, kOwnProfile));
    return no(
        Verdict::kNot,
        "AppArmor restricts user namespaces to programs with a profile that grants userns",
        Who::kAdmin,
        Text("as administrator, best an AppArmor profile for taskcell: ", kProfile,
             "; or for every program: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"));
  }
  if (!root && !BlockingSetting(facts, "RestrictNamespaces").empty()) {
    const Unit& own = *facts.systemd.own;
    finding.found.push_back(BlockingEvidence(facts, "RestrictNamespaces"));
    return no(Verdict::kNot,
              Text("RestrictNamespaces= of ", Printable(own.name), " forbids namespaces"),
              Who::kAdmin,
              cgroup::DropIn(own.name, "RestrictNamespaces=no",
                             Text("systemctl restart ", ShellWord(own.name))));
  }
  std::string_view seccomp = FieldOf(files.File(kStatus).text, "Seccomp");
  if (!facts.live && seccomp == "2") {
    finding.found.push_back({std::string(kStatus), "Seccomp: 2"});
    return no(
        Verdict::kUnknown,
        "a system call filter is installed on this process; whether it lets user namespaces be "
        "made can only be tried",
        Who::kNone, "");
  }
  return finding;
}

bool IsRestricted(const Finding& finding, const FileFacts& files) {
  return finding.verdict == Verdict::kNot && files.Number(kAppArmorRestriction) == 1U &&
         finding.found.back().file == kOwnProfile;
}

std::string UsernsState(const Finding& finding, bool restricted) {
  if (finding.verdict == Verdict::kUnknown) return "unknown";
  if (finding.verdict != Verdict::kNot) return "yes";
  return restricted ? "restricted" : "no";
}

// A trial outweighs what files let expect: something that no file shows may forbid it, and a
// profile may allow it.
void AddTrial(const HostFacts& facts, Finding& finding) {
  const Trial* trial = facts.live ? facts.live->Find("user-namespace") : nullptr;
  if (trial == nullptr || trial->outcome == Outcome::kUnknown) return;
  finding.found.push_back({"trial", Text(Name(trial->outcome), trial->err == 0 ? "" : " ",
                                         ErrorName(trial->err), " ", trial->detail)});
  const Trial* depth = facts.live->Find("user-namespace-depth");
  if (depth != nullptr && depth->outcome == Outcome::kWorks)
    finding.found.push_back({"trial of nesting", depth->detail});
  bool works = trial->outcome == Outcome::kWorks;
  if (works && finding.verdict == Verdict::kNot) {
    finding.verdict = Verdict::kNote;
    finding.reason = "user namespaces can be made by this program, although: " + finding.reason;
  }
  if (works || finding.verdict != Verdict::kReady) return;
  finding.verdict = Verdict::kNot;
  finding.reason = Text("a user namespace cannot be made or used: ", Printable(trial->detail));
  bool used_up = trial->err == ENOSPC || trial->err == EUSERS;
  finding.who = used_up ? Who::kAdmin : Who::kOuter;
  finding.fix = used_up ? "the limit (user.max_user_namespaces) is used up here or in an outer "
                          "namespace, or they "
                          "are nested 32 deep: end what uses them, or as administrator raise it"
                        : "a seccomp filter or security module of whatever started this process "
                          "refuses it: there, "
                          "allow unshare, clone and mount (a container: --security-opt "
                          "seccomp=unconfined; a unit: "
                          "RestrictNamespaces=no)";
}

void AddUserns(const HostFacts& facts, Report& report) {
  Finding finding = UsernsFromFiles(facts);
  bool restricted = IsRestricted(finding, facts.files);
  AddTrial(facts, finding);
  report.userns = {UsernsState(finding, restricted), finding.reason, finding.who, finding.fix};
  report.findings.push_back(std::move(finding));
}

void AddSubids(const HostFacts& facts, Report& report) {
  const cgroup::Surroundings& around = facts.cgroups.around;
  report.subids = AssessSubids(facts.subids, around.user, around.uid);
  Finding finding{"subids", Verdict::kNote, report.subids.reason, report.subids.who,
                  report.subids.fix};
  if (report.subids.state == "ok") finding.verdict = Verdict::kReady;
  for (const auto& [path, seen] : {std::pair(facts.subids.subuid_path, &facts.subids.subuid),
                                   std::pair(facts.subids.subgid_path, &facts.subids.subgid)}) {
    std::string lines = OwnLines(seen->text, around.user, around.uid);
    if (seen->absent())
      lines = "missing";
    else if (!seen->present())
      lines = "cannot be read";
    else if (lines.empty())
      lines = Text("no line for ", around.UserName());
    finding.found.push_back({path, lines});
  }
  report.findings.push_back(std::move(finding));
}

bool MayMap(const SubidFacts::Program& program) {
  return program.has_capabilities ||
         (program.file.owner_known && program.file.uid == 0 && (program.file.mode & S_ISUID) != 0);
}

void AddMappers(const HostFacts& facts, Report& report) {
  Finding finding{"newuidmap", Verdict::kReady, "newuidmap and newgidmap may write id maps"};
  std::string_view no_new_privileges = FieldOf(facts.files.File(kStatus).text, "NoNewPrivs");
  for (const SubidFacts::Program* each : {&facts.subids.newuidmap, &facts.subids.newgidmap}) {
    if (each->path.empty()) continue;
    finding.found.push_back({each->path, Text("uid ", each->file.uid,
                                              each->has_capabilities ? ", capabilities"
                                              : MayMap(*each)        ? ", set-user-id"
                                                                     : ", no privilege")});
  }
  auto note = [&](std::string reason, Who who, std::string fix) {
    finding.verdict = Verdict::kNote;
    finding.reason = std::move(reason);
    finding.who = who;
    finding.fix = std::move(fix);
  };
  if (facts.subids.newuidmap.path.empty() || facts.subids.newgidmap.path.empty()) {
    note("newuidmap or newgidmap is not installed, so cells map the caller's own id alone",
         Who::kAdmin,
         "as administrator: apt install uidmap (elsewhere: shadow-utils or shadow-uidmap)");
  } else if (!MayMap(facts.subids.newuidmap) || !MayMap(facts.subids.newgidmap)) {
    note(
        "newuidmap or newgidmap has neither the set-user-id bit nor capabilities, so it cannot map "
        "ids",
        Who::kAdmin,
        Text("as administrator: chmod u+s ", ShellWord(facts.subids.newuidmap.path), " ",
             ShellWord(facts.subids.newgidmap.path)));
  } else if (no_new_privileges == "1") {
    finding.found.push_back({std::string(kStatus), "NoNewPrivs: 1"});
    note("no_new_privs is set on this process, so newuidmap cannot gain its privilege", Who::kOuter,
         "whoever starts this process must not set it (in a unit: NoNewPrivileges=no)");
  }
  report.findings.push_back(std::move(finding));
}

// Inside a user namespace the kernel may have forbidden setgroups(2) for good.
void AddSetgroups(const HostFacts& facts, Report& report) {
  if (!facts.files.File("/proc/self/setgroups").present()) return;
  Finding finding{"setgroups",
                  Verdict::kReady,
                  "supplementary groups can be given up",
                  Who::kNone,
                  "",
                  {Seen(facts.files, "/proc/self/setgroups")}};
  if (facts.files.Line("/proc/self/setgroups") == "deny") {
    finding.verdict = Verdict::kNote;
    finding.reason =
        "setgroups is denied in this user namespace, so a process keeps its supplementary groups";
    finding.who = Who::kOuter;
    finding.fix =
        "make the outer namespace with newuidmap and newgidmap, which need no such denial";
  }
  finding.found.push_back(
      {"/proc/self/uid_map",
       Text(Split(facts.files.Line("/proc/self/uid_map"), '\n').size(),
            facts.cgroups.around.in_user_namespace ? " ranges: in an inner user namespace"
                                                   : " range: in the initial user namespace")});
  report.findings.push_back(std::move(finding));
}

}  // namespace

void JudgeNamespaces(const HostFacts& facts, Report& report) {
  AddUserns(facts, report);
  AddSetgroups(facts, report);
  AddSubids(facts, report);
  AddMappers(facts, report);
}

}  // namespace taskcell::probe

#include <algorithm>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/native/options.h"
#include "probe/rules/report.h"

namespace taskcell::probe {
namespace {

using cgroup::Chain;
using cgroup::Controller;
using cgroup::Diagnosis;
using cgroup::Level;
using cgroup::LimitState;

Verdict VerdictOf(LimitState state, bool none_holds) {
  switch (state) {
    case LimitState::kYes:
      return Verdict::kReady;
    case LimitState::kUnknown:
      return Verdict::kUnknown;
    case LimitState::kNo:
      break;
  }
  return none_holds ? Verdict::kNot : Verdict::kLimited;
}

void AddLimit(const Diagnosis& diagnosis, std::string_view name, bool none_holds, Report& report) {
  Finding finding{Text("limits.", name), VerdictOf(diagnosis.state, none_holds), diagnosis.reason,
                  diagnosis.who, diagnosis.fix};
  if (diagnosis.state == LimitState::kYes)
    finding.reason = Text("can be enforced below ", Printable(diagnosis.place));
  if (!diagnosis.file.empty()) finding.found.push_back({diagnosis.file, diagnosis.value});
  report.findings.push_back(std::move(finding));
}

LimitState Overall(const Report& report) {
  LimitState overall = LimitState::kYes;
  for (const Diagnosis& each : report.limits) {
    if (each.state == LimitState::kNo) return LimitState::kNo;
    if (each.state == LimitState::kUnknown) overall = LimitState::kUnknown;
  }
  return overall;
}

uint64_t DefaultOf(Controller controller) {
  const cell::Limits& limits = native::kDefaultLimits;
  switch (controller) {
    case Controller::kMemory:
      return limits.memory_bytes;
    case Controller::kPids:
      return limits.pids;
    case Controller::kCpu:
      return limits.cpu_millis;
    case Controller::kCpuset:
    case Controller::kIo:
      break;
  }
  return 0;
}

// A limit from outside below what a cell asks by default is in force whatever the cell's own says.
void AddOuterLimits(Report& report) {
  Finding finding{"cgroup.outer-limits", Verdict::kReady,
                  "no smaller limit is in force from outside"};
  std::string smaller;
  std::string files;
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i) {
    const Diagnosis& limit = report.limits[i];
    if (!limit.outer_limit) continue;
    finding.found.push_back({limit.outer_file, Text(*limit.outer_limit)});
    if (*limit.outer_limit >= DefaultOf(cgroup::kControllers[i])) continue;
    smaller +=
        Text(smaller.empty() ? "" : ", ", Name(cgroup::kControllers[i]), ' ', *limit.outer_limit);
    files += Text(' ', ShellWord(limit.outer_file));
  }
  if (!smaller.empty()) {
    finding.verdict = Verdict::kNote;
    finding.reason =
        Text("limits already in force here are smaller than a cell's default: ", smaller,
             " (bytes, processes, thousandths of a core)");
    finding.fix =
        Text("where a cell needs more, whoever set it raises it:", files,
             " (of a unit: systemctl set-property UNIT MemoryMax= TasksMax= CPUQuota=; an "
             "engine that was asked for 0 processes may have set 1)");
  }
  report.findings.push_back(std::move(finding));
}

void AddMode(const HostFacts& facts, Report& report) {
  Finding finding{"cgroup.mode", Verdict::kReady, Text("cgroup hierarchy: ", Name(report.mode))};
  for (const Chain& chain : facts.cgroups.chains) {
    const cgroup::Hierarchy& hierarchy = chain.hierarchy;
    finding.found.push_back(
        {hierarchy.mount_point.empty() ? "(not mounted)" : hierarchy.mount_point,
         Text(hierarchy.unified ? "cgroup2" : "cgroup v1", ", own cgroup ", hierarchy.own_path)});
  }
  if (report.mode == cgroup::Mode::kV1 || report.mode == cgroup::Mode::kHybrid) {
    finding.verdict = Verdict::kNote;
    finding.reason += "; v1 controllers are not delegated by service managers and are going away";
  }
  report.findings.push_back(std::move(finding));
}

// Measured: crun refuses every container where a v2 controller is active beside v1.
void AddMixedControllers(const HostFacts& facts, Report& report) {
  if (report.mode != cgroup::Mode::kHybrid) return;
  for (const Chain& chain : facts.cgroups.chains) {
    if (!chain.hierarchy.unified || chain.levels.empty()) continue;
    const Level& root = chain.levels.front();
    std::string controllers(Trim(root.File("cgroup.controllers").text));
    if (controllers.empty()) continue;
    report.findings.push_back(
        {"cgroup.v2-beside-v1",
         Verdict::kNote,
         Text("controllers of the unified hierarchy are active beside v1 (", Printable(controllers),
              "): the runtime crun refuses to start containers here"),
         Who::kAdmin,
         "as administrator: boot with systemd.unified_cgroup_hierarchy=1, or give the engine "
         "another "
         "runtime (runc)",
         {{root.FilePath("cgroup.controllers"), controllers}}});
  }
}

void AddInternalProcesses(const Chain& chain, Report& report) {
  const Level& own = chain.levels.back();
  std::string_view processes = Trim(own.File("cgroup.procs").text);
  bool can_be_made = report.overall != LimitState::kNo && own.File("cgroup.type").present();
  if (processes.empty() || !can_be_made) return;
  report.findings.push_back(
      {"cgroup.internal-processes",
       Verdict::kNote,
       Text("the own cgroup ", Printable(own.path),
            " holds processes, which must leave it before it can hand controllers on; taskcell "
            "moves "
            "them to 'supervisor' below it, other engines do not"),
       Who::kNone,
       "in the unit: DelegateSubgroup=supervisor (systemd 254 and later), or start the engine in a "
       "child cgroup",
       {{own.FilePath("cgroup.procs"), Text(Split(processes, '\n').size(), " processes")}}});
}

void AddOwn(const Chain& chain, Report& report) {
  const Level& own = chain.levels.back();
  std::string type(Trim(own.File("cgroup.type").text));
  Finding finding{"cgroup.own", Verdict::kReady,
                  Text("own cgroup: ", Printable(own.path), ", owned by uid ", own.directory.uid,
                       type.empty() ? "" : ", type ", Printable(type))};
  finding.found.push_back({own.path, Text("uid ", own.directory.uid)});
  for (const char* name : {"cgroup.controllers", "cgroup.subtree_control"}) {
    if (own.File(name).present())
      finding.found.push_back({own.FilePath(name), std::string(Trim(own.File(name).text))});
  }
  report.findings.push_back(std::move(finding));
}

void AddMountOptions(const Chain& chain, Report& report) {
  const cgroup::Hierarchy& hierarchy = chain.hierarchy;
  bool bounded = HasMountOption(hierarchy.mount_options, "nsdelegate");
  bool recursive = HasMountOption(hierarchy.mount_options, "memory_recursiveprot");
  Finding finding{"cgroup.mount-options",
                  Verdict::kReady,
                  "nsdelegate bounds cgroup namespaces, so a container cannot raise its own limits",
                  Who::kNone,
                  "",
                  {{hierarchy.mount_point, hierarchy.mount_options}}};
  if (!bounded) {
    finding.verdict = Verdict::kNote;
    finding.reason =
        "mounted without nsdelegate: root in a container with a writable cgroup file system can "
        "raise its own limit (taskcell's cells get none, and their limits sit one level above)";
    finding.who = Who::kAdmin;
    finding.fix =
        Text("as administrator: mount -o remount,nsdelegate ", ShellWord(hierarchy.mount_point));
  }
  if (!recursive) finding.found.push_back({hierarchy.mount_point, "no memory_recursiveprot"});
  report.findings.push_back(std::move(finding));
}

void AddUnified(const HostFacts& facts, Report& report) {
  if (report.mode != cgroup::Mode::kV2) return;
  for (const Chain& chain : facts.cgroups.chains) {
    if (!chain.hierarchy.unified || chain.levels.empty()) continue;
    AddOwn(chain, report);
    AddMountOptions(chain, report);
    AddInternalProcesses(chain, report);
  }
}

}  // namespace

void JudgeLimits(const HostFacts& facts, Report& report) {
  report.mode = facts.cgroups.mode;
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i) {
    report.limits[i] = Diagnose(facts.cgroups, cgroup::kControllers[i]);
    BlameUserManager(facts, cgroup::kControllers[i], report.limits[i]);
  }
  report.overall = Overall(report);
  bool none_holds =
      std::all_of(report.limits.begin(), report.limits.end(),
                  [](const Diagnosis& each) { return each.state == LimitState::kNo; });
  for (std::size_t i = 0; i < cgroup::kControllerCount; ++i)
    AddLimit(report.limits[i], Name(cgroup::kControllers[i]), none_holds, report);
  AddMode(facts, report);
  AddOuterLimits(report);
  AddMixedControllers(facts, report);
  AddUnified(facts, report);
}

}  // namespace taskcell::probe

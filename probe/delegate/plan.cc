#include "probe/delegate/plan.h"

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cgroup/remedy.h"
#include "probe/delegate/directories.h"
#include "probe/delegate/programs.h"

namespace taskcell::probe::delegate {
namespace {

using cgroup::Chain;
using cgroup::Controller;
using cgroup::Diagnosis;
using cgroup::Fault;
using cgroup::LimitState;
using cgroup::Who;

constexpr std::string_view kDropInName = "taskcell.conf";
constexpr std::string_view kDelegated = "cpu cpuset io memory pids";
constexpr uint32_t kTextMode = 0644;

std::string ManagerOf(const Target& user) { return Text("user@", user.uid, ".service"); }
// Of this user's manager only: what one user is given is no other user's matter.
std::string DropInDirectory(const Target& user) {
  return Text("/etc/systemd/system/", ManagerOf(user), ".d");
}
std::string DropInPath(const Target& user) { return Text(DropInDirectory(user), "/", kDropInName); }

// What delegation is the answer to; every other fault has a cause of its own.
bool IsMissingDelegation(Fault fault) {
  switch (fault) {
    case Fault::kNotDelegated:
    case Fault::kControlNotDelegated:
    case Fault::kNotHandedOn:
    case Fault::kUnmanagedV1:
    case Fault::kOutOfReach:
      return true;
    default:
      return false;
  }
}

// Whether the user's service manager is who hands cgroups of this hierarchy over.
bool HasManager(const Facts& facts, const Chain& chain) {
  return facts.cgroups.around.systemd && facts.cgroups.mode == cgroup::Mode::kV2 &&
         chain.hierarchy.unified;
}

void AddObstacle(const Diagnosis& diagnosis, Plan& plan) {
  bool known = std::any_of(plan.obstacles.begin(), plan.obstacles.end(), [&](const Obstacle& each) {
    return each.reason == diagnosis.reason && each.fix == diagnosis.fix;
  });
  if (!known) plan.obstacles.push_back({diagnosis.reason, diagnosis.who, diagnosis.fix});
}

bool Includes(const Chain* chain, const std::vector<const Chain*>& chains) {
  return std::find(chains.begin(), chains.end(), chain) != chains.end();
}

void Include(const Chain* chain, std::vector<const Chain*>& chains) {
  if (!Includes(chain, chains)) chains.push_back(chain);
}

std::string NameOnly(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::vector<std::string> Loginctl(const Facts& facts, std::string_view verb, const Target& user) {
  std::vector<std::string> argv = {ProgramIn(facts.files, "loginctl"), std::string(verb)};
  if (user.name.starts_with('-')) argv.emplace_back("--");
  argv.push_back(user.name);
  return argv;
}

// A drop-in, where the manager's files do not hand over all that is limited. False where it would
// not count.
bool AddDropIn(const Facts& facts, Plan& plan) {
  Delegation configured = DelegationOf(facts.systemd.user_manager);
  bool whole = std::all_of(std::begin(cgroup::kControllers), std::end(cgroup::kControllers),
                           [&](Controller each) { return configured.Holds(Name(each)); });
  if (whole) return true;
  const Target& user = plan.user;
  if (!configured.off_in.empty() && NameOnly(configured.off_in) > kDropInName) {
    plan.obstacles.push_back(
        {Text("Delegate= is switched off in ", Printable(configured.off_in),
              ", which counts after every other file"),
         Who::kAdmin,
         Text("take the line out of ", ShellWord(configured.off_in), ", then ask again")});
    return false;
  }
  std::vector<std::string> reload = {ProgramIn(facts.files, "systemctl"), "daemon-reload"};
  plan.steps.push_back(
      {Text("Delegate= for ", ManagerOf(user)),
       configured.off_in.empty()
           ? Text("the user's service manager is not given all of memory, pids and cpu")
           : Text("it is switched off in ", Printable(configured.off_in),
                  ", and without it the manager cannot start"),
       {MakeDirectory(DropInDirectory(user)), RunCommand({}, reload),
        WriteFile(DropInPath(user), Text("[Service]\nDelegate=", kDelegated, "\n"), kTextMode),
        RunCommand(reload, {})}});
  return true;
}

void AddManager(const Facts& facts, const Chain& chain, Plan& plan) {
  const Target& user = plan.user;
  if (facts.systemd.lingers) {
    plan.steps.push_back(
        {Text("start ", ManagerOf(user)),
         "it lingers and still does not run",
         {RunCommand({ProgramIn(facts.files, "systemctl"), "start", ManagerOf(user)}, {})}});
    return;
  }
  plan.steps.push_back(
      {"lingering",
       "the user's service manager, which holds the delegated cgroups, then runs without a login "
       "and from boot on",
       {RunCommand(Loginctl(facts, "enable-linger", user), Loginctl(facts, "disable-linger", user),
                   "/var/lib/systemd/linger/" + user.name,
                   chain.hierarchy.mount_point + cgroup::UserManagerPath(user.uid))}});
}

void AddManagerNotes(const Facts& facts, bool missing, Plan& plan) {
  const Target& user = plan.user;
  const cgroup::Surroundings& around = facts.cgroups.around;
  if (missing)
    plan.notes.push_back(
        {Text("what a running manager has stays as it is: log out of every session and in again, "
              "or, ending all that runs there: systemctl restart ",
              ManagerOf(user)),
         true});
  if (around.runtime_directory && !around.user_bus)
    plan.notes.push_back({Text("the user manager has no D-Bus socket (/run/user/", user.uid,
                               "/bus): apt install dbus-user-session (or the distribution's "
                               "package of that purpose), then log in again"),
                          true});
  if (!facts.systemd.lingers)
    plan.notes.push_back(
        {Text("the manager ends with the user's last session, and its cells with "
              "it; where that is not wanted: loginctl enable-linger ",
              ShellWord(user.name))});
}

void PlanManager(const Facts& facts, const Chain& chain, bool missing, Plan& plan) {
  plan.by_manager = true;
  if (missing && !AddDropIn(facts, plan)) return;
  if (facts.systemd.user_manager_runs)
    AddManagerNotes(facts, missing, plan);
  else
    AddManager(facts, chain, plan);
}

void PlanDirectories(const Chain& chain, bool missing, Plan& plan, std::vector<Change>& all) {
  std::vector<Change> changes = DirectoriesOn(chain, plan.user);
  all.insert(all.end(), changes.begin(), changes.end());
  if (chain.hierarchy.unified) {
    plan.supervisors.push_back(SupervisorOn(chain, plan.user));
    plan.notes.push_back(
        {Text("on the unified hierarchy a process is limited below the cgroup it is in only: have "
              "root start what the user runs in there, in a service's or login's script: echo $$ >",
              ShellWord(plan.supervisors.back() + "/cgroup.procs"))});
  }
  if (!missing) return;
  plan.steps.push_back(
      {Text("a directory of the user's own on ", Printable(chain.hierarchy.mount_point)),
       chain.hierarchy.unified ? "no service manager here delegates a cgroup to the user"
                               : "no service manager delegates anything of a v1 hierarchy",
       std::move(changes)});
}

}  // namespace

bool Plan::complete() const {
  bool pending =
      std::any_of(notes.begin(), notes.end(), [](const Note& each) { return each.pending; });
  return steps.empty() && obstacles.empty() && !pending;
}

Facts ReadFacts(sys::FileTree& tree, const Target& user) {
  cgroup::Subject subject;
  subject.uid = user.uid;
  subject.user_manager = true;
  Facts facts;
  facts.cgroups = cgroup::ReadSituation(tree, subject);
  facts.systemd = ReadSystemdFacts(tree, facts.cgroups);
  ReadProgramFacts(tree, facts.files);
  ReadBootFacts(tree, user, facts.files);
  return facts;
}

Plan MakePlan(const Facts& facts, const Target& user) {
  Plan plan;
  plan.user = user;
  plan.mode = facts.cgroups.mode;
  std::vector<const Chain*> chains;   // that a limit can be handed over on
  std::vector<const Chain*> missing;  // those of them where it is not
  for (Controller controller : cgroup::kControllers) {
    Diagnosis diagnosis = Diagnose(facts.cgroups, controller);
    const Chain* chain = facts.cgroups.Find(Name(controller));
    bool manager = chain != nullptr && HasManager(facts, *chain);
    bool ours = IsMissingDelegation(diagnosis.fault) && (manager || diagnosis.who != Who::kOuter);
    if (diagnosis.state != LimitState::kYes && !ours) {
      AddObstacle(diagnosis, plan);
      continue;
    }
    Include(chain, chains);
    // Whoever has a manager is not bound to what else was prepared.
    bool prepared = diagnosis.fault == Fault::kOutOfReach && !manager;
    if (diagnosis.state != LimitState::kYes && !prepared) Include(chain, missing);
  }
  std::vector<Change> directories;
  for (const Chain* chain : chains) {
    bool is_missing = Includes(chain, missing);
    if (HasManager(facts, *chain))
      PlanManager(facts, *chain, is_missing, plan);
    else
      PlanDirectories(*chain, is_missing, plan, directories);
  }
  AddBoot(facts, directories, plan);
  return plan;
}

}  // namespace taskcell::probe::delegate

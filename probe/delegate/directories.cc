#include "probe/delegate/directories.h"

#include <algorithm>

#include "launcher/base/text.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/cgroup/unified.h"
#include "probe/delegate/programs.h"
#include "probe/facts/unit_file.h"

namespace taskcell::probe::delegate {
namespace {

constexpr std::string_view kLocalDirectory = "/etc/local.d";  // OpenRC's service `local` runs it
constexpr std::string_view kLocalEnabled = "/etc/runlevels/default/local";
constexpr std::string_view kCronDirectory = "/etc/cron.d";
constexpr std::string_view kCronDaemons[] = {"/usr/sbin/cron", "/usr/sbin/crond", "/usr/bin/crond",
                                             "/usr/sbin/fcron"};
constexpr uint32_t kScriptMode = 0755;
constexpr uint32_t kTextMode = 0644;

std::string JobName(const Target& user) { return Text("taskcell-uid-", user.uid); }
std::string UnitOf(const Target& user) { return JobName(user) + ".service"; }
std::string UnitPath(const Target& user) { return "/etc/systemd/system/" + UnitOf(user); }
std::string WantedPath(const Target& user) {
  return "/etc/systemd/system/multi-user.target.wants/" + UnitOf(user);
}
std::string CronPath(const Target& user) { return Text(kCronDirectory, "/", JobName(user)); }
std::string LocalPath(const Target& user) {
  return Text(kLocalDirectory, "/", JobName(user), ".start");
}
std::string ScriptPath(const Target& user) {
  return Text("/etc/taskcell/delegate-uid-", user.uid, ".sh");
}

// Which of what a cell can be limited by the cgroup offers to its children, as words.
std::string Offered(const cgroup::Level& root) {
  constexpr cgroup::Controller kAll[] = {cgroup::Controller::kMemory, cgroup::Controller::kPids,
                                         cgroup::Controller::kCpu, cgroup::Controller::kCpuset,
                                         cgroup::Controller::kIo};
  std::string names;
  std::vector<std::string_view> offered = Words(root.File("cgroup.controllers").text);
  for (cgroup::Controller each : kAll) {
    std::string_view name = Name(each);
    bool has = std::find(offered.begin(), offered.end(), name) != offered.end();
    if (has) names += Text(names.empty() ? "" : " ", name);
  }
  return names;
}

void GiveAway(const std::string& directory, const Target& user, std::vector<Change>& changes) {
  auto give = [&](const std::string& path) { changes.push_back(GiveTo(path, user.uid, user.gid)); };
  give(directory);
  for (const char* file : {"cgroup.procs", "cgroup.threads", "cgroup.subtree_control"})
    give(Text(directory, "/", file));
}

std::string Script(const std::vector<Change>& directories, const Target& user) {
  std::string script =
      Text("#!/bin/sh\n# By taskcell-probe delegate: the cgroup directories of uid ", user.uid,
           ", which are gone after a boot.\numask 022\n");
  for (const Change& each : directories) script += CommandOf(each) + "\n";
  return script;
}

std::vector<Change> ByUnit(const Facts& facts, const std::string& script, const Target& user) {
  std::string systemctl = ProgramIn(facts.files, "systemctl");
  std::string unit = Text("[Unit]\nDescription=cgroup directories of uid ", user.uid,
                          " for taskcell\n[Service]\nType=oneshot\nRemainAfterExit=yes\n"
                          "ExecStart=/bin/sh ",
                          ScriptPath(user), "\n[Install]\nWantedBy=multi-user.target\n");
  std::vector<std::string> reload = {systemctl, "daemon-reload"};
  return {MakeDirectory("/etc/taskcell"),
          WriteFile(ScriptPath(user), script, kScriptMode),
          RunCommand({}, reload),
          WriteFile(UnitPath(user), std::move(unit), kTextMode),
          RunCommand(reload, {}),
          RunCommand({systemctl, "enable", UnitOf(user)}, {systemctl, "disable", UnitOf(user)},
                     WantedPath(user))};
}

std::vector<Change> ByOpenRc(const Facts& facts, const std::string& script, const Target& user) {
  std::string update = ProgramIn(facts.files, "rc-update");
  return {WriteFile(LocalPath(user), script, kScriptMode),
          RunCommand({update, "add", "local", "default"}, {update, "del", "local", "default"},
                     std::string(kLocalEnabled))};
}

bool HasCron(const FileFacts& files) {
  if (!files.File(kCronDirectory).present()) return false;
  for (std::string_view each : kCronDaemons) {
    if (files.File(each).present()) return true;
  }
  return false;
}

std::vector<Change> ByInit(const Facts& facts, const std::string& script, Plan& plan) {
  const Target& user = plan.user;
  if (facts.cgroups.around.systemd) return ByUnit(facts, script, user);
  if (facts.files.File(kLocalDirectory).present()) return ByOpenRc(facts, script, user);
  std::vector<Change> changes = {MakeDirectory("/etc/taskcell"),
                                 WriteFile(ScriptPath(user), script, kScriptMode)};
  if (HasCron(facts.files))
    changes.push_back(WriteFile(CronPath(user),
                                Text("@reboot root /bin/sh ", ScriptPath(user), "\n"), kTextMode));
  else
    plan.notes.push_back(
        {Text("this host has neither systemd nor OpenRC nor cron: whatever starts it must run ",
              ScriptPath(user), " as root at each boot")});
  return changes;
}

// Whether the change is made already, as far as the facts tell.
bool IsThere(const FileFacts& files, const Change& change) {
  if (change.path.empty()) return true;
  const sys::FileSeen& seen = files.File(change.path);
  if (change.kind == ChangeKind::kFile) return seen.present() && seen.text == change.text;
  return seen.present();
}

}  // namespace

std::string SupervisorOn(const cgroup::Chain& chain, const Target& user) {
  return Text(chain.hierarchy.mount_point, "/", cgroup::DelegatedBelow(user.uid), "/",
              cgroup::kSupervisor);
}

std::vector<Change> DirectoriesOn(const cgroup::Chain& chain, const Target& user) {
  const std::string& mount = chain.hierarchy.mount_point;
  const std::string ours = mount + "/taskcell";
  const std::string own = Text(mount, "/", cgroup::DelegatedBelow(user.uid));
  std::vector<Change> changes;
  if (!chain.hierarchy.unified) {
    changes.push_back(MakeDirectory(ours));
    changes.push_back(MakeDirectory(own, user.uid));
    changes.push_back(GiveTo(own, user.uid, user.gid));
    return changes;
  }
  if (chain.levels.empty()) return changes;
  std::string offered = Offered(chain.levels.front());
  changes.push_back(TurnOn(mount + "/cgroup.subtree_control", offered));
  changes.push_back(MakeDirectory(ours));
  changes.push_back(TurnOn(ours + "/cgroup.subtree_control", offered));
  changes.push_back(MakeDirectory(own, user.uid));
  changes.push_back(MakeDirectory(SupervisorOn(chain, user), user.uid));
  GiveAway(own, user, changes);
  GiveAway(SupervisorOn(chain, user), user, changes);
  return changes;
}

void AddBoot(const Facts& facts, const std::vector<Change>& directories, Plan& plan) {
  if (directories.empty()) return;
  std::vector<Change> changes = ByInit(facts, Script(directories, plan.user), plan);
  bool there = std::all_of(changes.begin(), changes.end(),
                           [&](const Change& each) { return IsThere(facts.files, each); });
  if (there) return;
  plan.steps.push_back({"the same directories again at each boot",
                        "a cgroup directory lives in memory only", std::move(changes)});
}

void ReadBootFacts(sys::FileTree& tree, const Target& user, FileFacts& files) {
  for (std::string_view path : {kLocalDirectory, kLocalEnabled, kCronDirectory})
    files.Add(std::string(path), tree.Look(std::string(path)));
  for (std::string_view path : kCronDaemons)
    files.Add(std::string(path), tree.Look(std::string(path)));
  for (const std::string& path :
       {UnitPath(user), CronPath(user), LocalPath(user), ScriptPath(user)})
    files.Add(path, tree.Read(path, kMaxUnitFileBytes));
  for (const std::string& path : {WantedPath(user), std::string("/etc/taskcell")})
    files.Add(path, tree.Look(path));
}

}  // namespace taskcell::probe::delegate

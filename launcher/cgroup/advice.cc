#include "launcher/cgroup/advice.h"

#include "launcher/base/text.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/cgroup/unified.h"

namespace taskcell::cgroup {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool IsEngines(std::string_view component) {
  for (std::string_view engine :
       {"docker", "libpod", "crio", "cri-containerd", "kubepods", "lxc", "podman"}) {
    if (StartsWith(component, engine) && !EndsWith(component, ".service")) return true;
  }
  return false;
}

Advice AskUserManager(const Question& question) {
  const Surroundings& around = question.around;
  std::string manager = Text("user@", around.uid, ".service");
  std::string user = ShellWord(around.UserName());
  std::string from_anywhere =
      Text(kScope, " (from su or sudo first: export XDG_RUNTIME_DIR=/run/user/", around.uid, ")");
  if (around.user_bus)
    return {{}, Who::kUser, Text("start it below your own service manager: ", from_anywhere)};
  if (around.runtime_directory && !around.user_manager)
    return {{},
            Who::kAdmin,
            Text("the user has logged in, but its service manager ", manager,
                 " does not run: systemctl status ", manager,
                 " tells why (where it is \"init.scope: Permission denied\", Delegate= is off for "
                 "it); as administrator: ",
                 DelegateCommand(around), "; then log in again")};
  if (around.runtime_directory)
    return {
        {},
        Who::kAdmin,
        Text("the user manager has no D-Bus socket (/run/user/", around.uid,
             "/bus): as administrator: apt install dbus-user-session (or the distribution's "
             "package of that purpose); then log in again, or: systemctl --user start dbus; then ",
             kScope)};
  return {{},
          Who::kUser,
          Text("open a real login session (ssh ", user, "@localhost, or machinectl shell ", user,
               "@) and there: ", kScope,
               "; an administrator can instead make the user's manager run without one: loginctl "
               "enable-linger ",
               user, ", and then here as well: ", from_anywhere)};
}

Advice AskForDirectory(const Question& question) {
  std::string directory = ShellWord(
      Text(question.chain.hierarchy.mount_point, "/", DelegatedBelow(question.around.uid)));
  return {{},
          Who::kAdmin,
          Text("as administrator: ", DelegateCommand(question.around),
               " (it turns memory, pids and cpu on from the root down and makes ", directory,
               " the user's own); then move the user's shell there: echo PID >", directory, "/",
               kSupervisor, "/cgroup.procs")};
}

}  // namespace

bool IsBelowUserManager(std::string_view path, uint32_t uid) {
  return Contains(path, Text("/user@", uid, ".service"));
}

Setting SettingOf(const Question& question) {
  const Surroundings& around = question.around;
  std::string_view own = question.chain.hierarchy.own_path;
  if (IsBelowUserManager(own, around.uid)) return Setting::kUserManager;
  for (std::string_view component : Split(own, '/')) {
    if (IsEngines(component)) return Setting::kContainer;
  }
  if (Contains(own, "/user-") && Contains(own, ".slice/")) return Setting::kSession;
  if (EndsWith(own, ".service") || Contains(own, ".service/")) return Setting::kUnit;
  if (around.in_container) return Setting::kContainer;
  return around.systemd ? Setting::kSession : Setting::kPlain;
}

// The unit file's name in a cgroup path: its last component that is a service.
std::string UnitName(std::string_view path) {
  std::string name = "UNIT";
  for (std::string_view component : Split(path, '/')) {
    if (EndsWith(component, ".service")) name = component;
  }
  return name;
}

std::string DelegateCommand(const Surroundings& around) {
  return Text("taskcell-probe delegate --user ", ShellWord(around.UserName()), " --apply");
}

std::string DropIn(std::string_view unit, std::string_view setting, std::string_view then) {
  std::string directory = Text("/etc/systemd/system/", unit, ".d");
  return Text("as administrator: mkdir -p ", ShellWord(directory), " && printf '[Service]\\n",
              setting, "\\n' >", ShellWord(directory + "/taskcell.conf"),
              " && systemctl daemon-reload; then ", then);
}

Advice AskOutside(const Question& question) {
  return {
      {},
      Who::kOuter,
      Text("whoever started this container must give it a writable, delegated ",
           Printable(question.chain.hierarchy.mount_point),
           " (podman run --security-opt unmask=/sys/fs/cgroup, or a privileged container), or run "
           "the task outside of it")};
}

// What makes the cgroup the user's own.
Advice AskForDelegation(const Question& question) {
  switch (SettingOf(question)) {
    case Setting::kUserManager:
    case Setting::kSession:
      return AskUserManager(question);
    case Setting::kUnit: {
      std::string unit = UnitName(question.chain.hierarchy.own_path);
      return {{},
              Who::kAdmin,
              DropIn(unit, "Delegate=yes", Text("systemctl restart ", ShellWord(unit)))};
    }
    case Setting::kContainer:
      return AskOutside(question);
    case Setting::kPlain:
      break;
  }
  return AskForDirectory(question);
}

}  // namespace taskcell::cgroup

#include "launcher/cgroup/remedy.h"

#include "launcher/base/text.h"

namespace taskcell::cgroup {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

std::string Directory(const Hierarchy& hierarchy, uid_t uid) {
  return Text(hierarchy.mount_point, "/", DelegatedBelow(uid));
}

std::string RemedyV1(const Hierarchy& hierarchy, uid_t uid) {
  std::string directory = Directory(hierarchy, uid);
  return Text("an administrator hands a directory over once after each boot: mkdir -p ", directory,
              " && chown ", uid, " ", directory,
              " (or boots with systemd.unified_cgroup_hierarchy=1)");
}

std::string RemedyV2(const Hierarchy& hierarchy, const std::vector<Controller>& wanted, uid_t uid) {
  std::string_view own = hierarchy.own_path;
  if (Contains(own, Text("/user@", uid, ".service/"))) {
    return Text(
        "start it with `systemd-run --user --scope -p Delegate=yes COMMAND`; if a controller is "
        "still missing, an administrator adds it in a drop-in of user@.service (Delegate=",
        "cpu cpuset io memory pids), runs `systemctl daemon-reload`, and the user logs in again");
  }
  if (Contains(own, "/session-") || Contains(own, ".slice/")) {
    if (EndsWith(own, ".service"))
      return "an administrator adds Delegate=yes to the [Service] section of that unit, runs "
             "`systemctl daemon-reload` and restarts it";
    return "open a real login session (ssh, machinectl shell) and start it with `systemd-run "
           "--user "
           "--scope -p Delegate=yes COMMAND`; an administrator can instead run `loginctl "
           "enable-linger` for the user";
  }
  std::string directory = Directory(hierarchy, uid);
  return Text("an administrator turns ", Names(wanted),
              " on in cgroup.subtree_control from the root down, makes ", directory,
              ", gives the user that directory with its cgroup.procs, cgroup.threads and "
              "cgroup.subtree_control, and moves the user's shell into ",
              directory, "/supervisor");
}

}  // namespace

std::string Names(const std::vector<Controller>& controllers) {
  std::string names;
  for (std::size_t i = 0; i < controllers.size(); ++i) {
    if (i > 0) names += i + 1 == controllers.size() ? " and " : ", ";
    names += Name(controllers[i]);
  }
  return names;
}

std::string DelegatedBelow(uid_t uid) { return Text("taskcell/uid-", uid); }

std::string Remedy(const Hierarchy& hierarchy, const std::vector<Controller>& wanted, uid_t uid) {
  if (hierarchy.mount_point.empty())
    return "an administrator mounts it (with the unified hierarchy: mount -t cgroup2 none "
           "/sys/fs/cgroup)";
  if (hierarchy.read_only)
    return Text("whoever started this container must give it a writable ", hierarchy.mount_point,
                ", or run the task outside of it");
  return hierarchy.unified ? RemedyV2(hierarchy, wanted, uid) : RemedyV1(hierarchy, uid);
}

Error Unenforced(const std::vector<Controller>& controllers, Error cause) {
  if (cause.code == kUnenforced) return cause;
  if (cause.kind != Kind::kDenied) cause.kind = Kind::kUnsupported;
  return std::move(cause)
      .With(Text(
          "the ", Names(controllers),
          controllers.size() == 1 ? " limit cannot be enforced" : " limits cannot be enforced"))
      .Coded(kUnenforced);
}

}  // namespace taskcell::cgroup

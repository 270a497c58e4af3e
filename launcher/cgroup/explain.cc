#include "launcher/base/text.h"
#include "launcher/cgroup/advice.h"
#include "launcher/cgroup/broken.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/cgroup/unified.h"

namespace taskcell::cgroup {
namespace {

// A file of the level at fault, as a word of a command.
std::string In(const Broken& broken, std::string_view name) {
  return ShellWord(broken.level->FilePath(name));
}

// Who can change a file of a level: its owner, if that is the user, else whoever rules there.
Who OwnerOf(const Question& question, const Broken& broken) {
  const sys::FileSeen& file =
      broken.file.empty() ? broken.level->directory : broken.level->File("cgroup.procs");
  const sys::FileSeen& owned = file.owner_known ? file : broken.level->directory;
  if (owned.owner_known && owned.uid == question.around.uid) return Who::kUser;
  return SettingOf(question) == Setting::kContainer ? Who::kOuter : Who::kAdmin;
}

Advice NotHandedOn(const Question& question, const Broken& broken) {
  std::string_view name = Name(question.controller);
  std::string where =
      Text("'", name, "' is not in ", Printable(broken.level->FilePath(broken.file)));
  switch (SettingOf(question)) {
    case Setting::kUserManager:
      if (IsBelowUserManager(broken.level->path, question.around.uid))
        return {Text("the user manager does not hand the controller on to this cgroup: ", where),
                Who::kUser, Text("start it in a scope that asks for it: ", kScope)};
      [[fallthrough]];
    case Setting::kSession: {
      std::string then = Text(
          "log out of every session and in again (or, ending what runs there: "
          "systemctl restart user@",
          question.around.uid, ".service)");
      return {
          Text("controller not delegated to the user manager: ", where), Who::kAdmin,
          Text("as administrator: ", DelegateCommand(question.around),
               " (a drop-in for user@.service with Delegate=, and daemon-reload); then ", then)};
    }
    case Setting::kUnit:
    case Setting::kPlain:
    case Setting::kContainer:
      break;
  }
  Advice advice = AskForDelegation(question);
  advice.reason = Text("own cgroup is not delegated: ", where);
  if (OwnerOf(question, broken) == Who::kUser) {
    advice.who = Who::kUser;
    advice.fix = Text("printf +", name, " >", ShellWord(broken.level->FilePath(broken.file)));
  }
  return advice;
}

Advice Threaded(const Question& question, const Broken& broken) {
  std::string path = Printable(broken.level->path);
  std::string type(Trim(broken.level->File("cgroup.type").text));
  Advice advice;
  advice.who = OwnerOf(question, broken);
  bool own = broken.level == &question.chain.levels.back();
  advice.reason = Text(own ? "own cgroup" : "a cgroup above the own one",
                       " is a threaded domain: cgroup.type of ", path, " is '", Printable(type),
                       "', which cannot limit memory: thread-wise controllers were turned on while "
                       "it held processes");
  // In this order: before they are off its children are 'domain invalid', and none can be joined.
  advice.fix =
      Text("switch them off again: printf '%s' '-pids -cpu -cpuset' >",
           In(broken, "cgroup.subtree_control"),
           "; then, before any controller is handed on, move its processes into a leaf below it: "
           "mkdir -p ",
           In(broken, kSupervisor), " && for p in $(cat ", In(broken, "cgroup.procs"),
           "); do echo $p >", In(broken, Text(kSupervisor, "/cgroup.procs")), "; done");
  if (question.around.systemd) advice.fix += Text("; or start the work in a fresh scope: ", kScope);
  return advice;
}

Advice ReadOnly(const Question& question) {
  const Hierarchy& hierarchy = question.chain.hierarchy;
  std::string mount = Printable(hierarchy.mount_point);
  std::string reason = Text("cgroup file system is mounted read-only here (", mount, ")");
  if (SettingOf(question) == Setting::kUnit && !question.around.in_container) {
    std::string unit = UnitName(hierarchy.own_path);
    return {reason + ": the unit protects it", Who::kAdmin,
            DropIn(unit, "ProtectControlGroups=no\\nDelegate=yes",
                   Text("systemctl restart ", ShellWord(unit)))};
  }
  Advice advice = AskOutside(question);
  advice.reason = reason;
  return advice;
}

Advice NotMounted(const Question& question) {
  std::string reason =
      Text("no cgroup hierarchy that holds ", Name(question.controller), " is mounted here");
  if (question.around.in_container) {
    Advice advice = AskOutside(question);
    advice.fix =
        "whoever started this container must mount the cgroup file system in it, delegated, or "
        "run the task outside of it";
    advice.reason = reason;
    return advice;
  }
  return {reason, Who::kAdmin, "as administrator: mount -t cgroup2 none /sys/fs/cgroup"};
}

Advice UnmanagedV1(const Question& question) {
  std::string_view name = Name(question.controller);
  if (question.around.in_container || question.chain.hierarchy.mount_root != "/") {
    Advice advice = AskOutside(question);
    advice.reason =
        Text(name, " is on a cgroup v1 hierarchy of which this container has no part of its own");
    return advice;
  }
  return {
      Text(name, " is on a cgroup v1 hierarchy (", Printable(question.chain.hierarchy.mount_point),
           "), which no service manager delegates"),
      Who::kAdmin,
      Text("as administrator: ", DelegateCommand(question.around),
           " (directories of the user's own on each v1 hierarchy, at each boot); or boot with all "
           "controllers on the unified hierarchy: add "
           "systemd.unified_cgroup_hierarchy=1 to the kernel's command line")};
}

// What the kernel does not offer at the root of the hierarchy.
Advice NotOffered(const Question& question, Fault fault) {
  std::string_view name = Name(question.controller);
  std::string at = Text(" (it is not in ", Printable(question.chain.hierarchy.mount_point),
                        "/cgroup.controllers)");
  switch (fault) {
    case Fault::kOffAtBoot:
      return {Text("the ", name, " controller is switched off at boot", at), Who::kAdmin,
              Text("as administrator: take cgroup_disable=", name,
                   " out of the kernel's command line (a Raspberry Pi's firmware adds it: put "
                   "cgroup_enable=",
                   name, " into cmdline.txt), then reboot")};
    case Fault::kHeldByV1:
      return {Text("the ", name, " controller is bound to a cgroup v1 hierarchy", at), Who::kAdmin,
              "as administrator: unmount the v1 hierarchy, or boot with "
              "systemd.unified_cgroup_hierarchy=1"};
    case Fault::kNotPassedIn:
      return {Text("the ", name, " controller is not passed into this container", at), Who::kOuter,
              Text("on the host of this container: hand the ", name,
                   " controller on to its cgroup (LXC: nesting and cgroup delegation; an engine: "
                   "delegate it to the engine's own unit)")};
    default:
      return {Text("this kernel has no ", name, " controller on the unified hierarchy", at),
              Who::kKernel,
              "boot a kernel that has it (a newer one, or one built with the option)"};
  }
}

Advice NotDelegated(const Question& question, const Broken& broken) {
  Advice advice = AskForDelegation(question);
  std::string path = Printable(broken.level->path);
  advice.reason = Text("own cgroup is not delegated: ", path, " belongs to uid ",
                       broken.level->directory.uid, ", not to ", question.around.uid);
  return advice;
}

Advice ControlNotDelegated(const Question& question, const Broken& broken) {
  Advice advice = AskForDelegation(question);
  std::string file = Printable(broken.level->FilePath(broken.file));
  advice.reason = Text("own cgroup is not delegated: the directory is, but ", file,
                       " belongs to uid ", broken.level->File(broken.file).uid);
  if (advice.who == Who::kUser) return advice;
  advice.fix += Text("; by hand: chown ", question.around.uid, " ", In(broken, broken.file));
  return advice;
}

Advice WritableByOthers(const Question&, const Broken& broken) {
  std::string path = Printable(broken.level->path);
  return {Text("other users may write ", path), Who::kUser,
          Text("chmod go-w ", ShellWord(broken.level->path))};
}

Advice Full(const Question& question, const Broken& broken) {
  std::string path = Printable(broken.level->path);
  return {Text("no more cgroups can be made below ", path,
               ": cgroup.max.depth or cgroup.max.descendants is reached"),
          OwnerOf(question, broken),
          Text("remove cgroups that are no longer used, or raise it: printf max >",
               In(broken, "cgroup.max.descendants"), " && printf max >",
               In(broken, "cgroup.max.depth"))};
}

Advice Frozen(const Question& question, const Broken& broken) {
  std::string path = Printable(broken.level->path);
  return {Text(path, " is frozen: nothing below it runs"), OwnerOf(question, broken),
          Text("printf 0 >", In(broken, "cgroup.freeze"))};
}

Advice BusyRoot(const Question&, const Broken& broken) {
  std::string path = Printable(broken.level->path);
  return {Text(path, " holds processes, so it cannot hand its controllers on"), Who::kUser,
          Text("as root: mkdir -p ", In(broken, "init"), " && for p in $(cat ",
               In(broken, "cgroup.procs"), "); do echo $p >", In(broken, "init/cgroup.procs"),
               "; done")};
}

Advice ForeignProcesses(const Question&, const Broken& broken) {
  return {Text(Printable(broken.level->path),
               " holds processes of an outer pid namespace, which cannot be moved from here"),
          Who::kOuter, "whoever started this container must give it a cgroup of its own"};
}

Advice NotVisible(const Question& question) {
  const Hierarchy& hierarchy = question.chain.hierarchy;
  return {
      Text("own cgroup ", Printable(hierarchy.own_path), " is not below what is mounted at ",
           Printable(hierarchy.mount_point)),
      Who::kOuter,
      "whoever made this cgroup or mount namespace must mount the cgroup file system anew in it"};
}

Advice Covered(const Question& question) {
  std::string mount = Printable(question.chain.hierarchy.mount_point);
  return {Text("something else is mounted over ", mount), Who::kOuter,
          Text("whoever mounted it must take it away: umount ",
               ShellWord(question.chain.hierarchy.mount_point))};
}

Advice SwapUnaccounted(const Question&, const Broken& broken) {
  return {Text("this host has swap, and the kernel does not account it: there is no ",
               Printable(broken.level->FilePath(broken.file)),
               ", so more than the memory limit could be used"),
          Who::kAdmin, "as administrator: boot with swapaccount=1, or switch swap off: swapoff -a"};
}

Advice OutOfReach(const Broken& broken) {
  std::string path = Printable(broken.level->path);
  return {
      Text("own cgroup is not delegated: ", path,
           " is, but this process is outside of it and no process can be moved there from here"),
      Who::kAdmin,
      Text("as administrator: move the user's shell there: echo PID >",
           In(broken, Text(kSupervisor, "/cgroup.procs")))};
}

// Neither is a verdict: what is missing is named, and nothing is guessed.
Advice Unknown(const Broken& broken) {
  std::string path =
      Printable(broken.file.empty() ? broken.level->path : broken.level->FilePath(broken.file));
  if (broken.fault == Fault::kContradiction)
    return {Text(path, " contradicts the cgroups above or below it"), Who::kNone, ""};
  return {Text(path, " is missing or cannot be read"), Who::kNone, ""};
}

Advice AdviceOf(const Question& question, const Broken& broken) {
  switch (broken.fault) {
    case Fault::kNone:
      return {};
    case Fault::kUnreadable:
    case Fault::kContradiction:
      return Unknown(broken);
    case Fault::kNotMounted:
      return NotMounted(question);
    case Fault::kCovered:
      return Covered(question);
    case Fault::kReadOnly:
      return ReadOnly(question);
    case Fault::kNotVisible:
      return NotVisible(question);
    case Fault::kNotOffered:
    case Fault::kOffAtBoot:
    case Fault::kHeldByV1:
    case Fault::kNotPassedIn:
      return NotOffered(question, broken.fault);
    case Fault::kThreaded:
      return Threaded(question, broken);
    case Fault::kNotHandedOn:
      return NotHandedOn(question, broken);
    case Fault::kFrozen:
      return Frozen(question, broken);
    case Fault::kFull:
      return Full(question, broken);
    case Fault::kNotDelegated:
      return NotDelegated(question, broken);
    case Fault::kWritableByOthers:
      return WritableByOthers(question, broken);
    case Fault::kControlNotDelegated:
      return ControlNotDelegated(question, broken);
    case Fault::kForeignProcesses:
      return ForeignProcesses(question, broken);
    case Fault::kBusyRoot:
      return BusyRoot(question, broken);
    case Fault::kNoBandwidth:
      return {Text("this kernel cannot limit processor time: there is no ",
                   Printable(broken.level->FilePath(broken.file))),
              Who::kKernel, "boot a kernel built with CONFIG_CFS_BANDWIDTH"};
    case Fault::kSwapUnaccounted:
      return SwapUnaccounted(question, broken);
    case Fault::kOutOfReach:
      return OutOfReach(broken);
    case Fault::kUnmanagedV1:
      return UnmanagedV1(question);
  }
  return {};
}

LimitState StateOf(Fault fault) {
  if (fault == Fault::kNone) return LimitState::kYes;
  bool unknown = fault == Fault::kUnreadable || fault == Fault::kContradiction;
  return unknown ? LimitState::kUnknown : LimitState::kNo;
}

// What shows the fault: an owner where that decides, else what the file holds.
std::string EvidenceOf(const Broken& broken) {
  const Level& level = *broken.level;
  if (broken.fault == Fault::kReadOnly) return "mounted read-only";
  if (broken.fault == Fault::kCovered) return "something else is mounted over it";
  const sys::FileSeen& file = broken.file.empty() ? level.directory : level.File(broken.file);
  bool owner_decides = broken.file.empty() || broken.fault == Fault::kControlNotDelegated;
  if (owner_decides && file.owner_known) {
    bool mode_decides = broken.fault == Fault::kWritableByOthers;
    return Text("uid ", file.uid, mode_decides ? ", writable by others" : "");
  }
  if (file.absent()) return "missing";
  return file.present() ? std::string(Trim(file.text)) : "cannot be read";
}

}  // namespace

void Explain(const Question& question, const Broken& broken, Diagnosis& diagnosis) {
  Advice advice = AdviceOf(question, broken);
  diagnosis.fault = broken.fault;
  diagnosis.state = StateOf(broken.fault);
  diagnosis.reason = std::move(advice.reason);
  diagnosis.who = advice.who;
  diagnosis.fix = std::move(advice.fix);
  if (broken.level == nullptr) return;
  diagnosis.level = broken.level->path;
  diagnosis.file = broken.file.empty() ? broken.level->path : broken.level->FilePath(broken.file);
  diagnosis.value = EvidenceOf(broken);
}

}  // namespace taskcell::cgroup

#include "launcher/cgroup/place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "launcher/base/text.h"
#include "launcher/cgroup/cpuset.h"
#include "launcher/cgroup/diagnosis.h"
#include "launcher/cgroup/directory.h"
#include "launcher/cgroup/remedy.h"
#include "launcher/cgroup/unified.h"
#include "launcher/sys/file.h"
#include "launcher/sys/file_tree.h"

namespace taskcell::cgroup {
namespace {

struct Search {
  const Hierarchy& hierarchy;
  const std::vector<Controller>& wanted;
  uid_t uid;
  UniqueFd mount;

  std::string PathOf(const std::string& below) const {
    return below.empty() ? hierarchy.mount_point : Text(hierarchy.mount_point, "/", below);
  }
};

Status CheckOwner(const Search& search, int directory_fd) {
  if (search.uid != 0) {
    struct stat info = TRY(sys::Stat(directory_fd));
    if (info.st_uid != search.uid)
      return Error(Kind::kDenied, Text("it belongs to uid ", info.st_uid, ", not to ", search.uid),
                   EACCES);
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      return Error(Kind::kDenied, "other users may write it", EACCES);
  }
  return sys::CheckAccess(directory_fd, ".", W_OK | X_OK);
}

// Whether a process from outside may be moved into the cgroup and controllers be handed on.
Status CheckControlFiles(int directory_fd) {
  TRY(sys::CheckAccess(directory_fd, "cgroup.procs", W_OK));
  return sys::CheckAccess(directory_fd, "cgroup.subtree_control", W_OK);
}

Result<Place> TryOwn(const Search& search) {
  std::optional<std::string> own = BelowMount(search.hierarchy, search.hierarchy.own_path);
  if (!own)
    return Error(Kind::kUnsupported,
                 Text("this process's cgroup ", Printable(search.hierarchy.own_path),
                      " is not below what is mounted here"));
  std::string below = *std::move(own);
  bool in_supervisor = false;
  if (search.hierarchy.unified) {
    std::size_t slash = below.rfind('/');
    std::string_view leaf = std::string_view(below).substr(slash == below.npos ? 0 : slash + 1);
    in_supervisor = leaf == kSupervisor;
    if (in_supervisor) below.resize(slash == below.npos ? 0 : slash);
    if (search.uid == 0 && !in_supervisor && !below.empty())
      return Error(Kind::kUnsupported, "it is left to whoever made it");
  }
  UniqueFd directory = TRY(OpenCgroup(search.mount.get(), below));
  TRY(CheckOwner(search, directory.get()));
  if (search.hierarchy.unified) {
    if (!below.empty() || sys::StatAt(directory.get(), "cgroup.type").ok())
      TRY(CheckControlFiles(directory.get()));
    TRY(EnableControllers(directory.get(), search.wanted, !in_supervisor));
  }
  return Place{search.hierarchy.unified, search.PathOf(below), std::move(directory)};
}

// Root makes its own delegated directory, and on the unified hierarchy hands the controllers down
// to it.
Status MakeForRoot(const Search& search) {
  int mount_fd = search.mount.get();
  std::string chain[] = {"", "taskcell", DelegatedBelow(search.uid)};
  for (const std::string& below : chain) {
    if (!below.empty()) {
      Status made = sys::MakeDirectory(mount_fd, below, 0755);
      if (!made.ok() && made.error().err != EEXIST) return made;
    }
    UniqueFd directory = TRY(OpenCgroup(mount_fd, below));
    if (!search.hierarchy.unified) {
      bool cpuset = !below.empty() && search.wanted.front() == Controller::kCpuset;
      if (cpuset) TRY(InheritCpuset(directory.get()).With(search.PathOf(below)));
      continue;
    }
    TRY(EnableControllers(directory.get(), search.wanted, false).With(search.PathOf(below)));
  }
  return Ok();
}

Result<Place> TryDelegated(const Search& search) {
  if (search.uid == 0) TRY(MakeForRoot(search));
  std::string below = DelegatedBelow(search.uid);
  UniqueFd directory = TRY(OpenCgroup(search.mount.get(), below));
  TRY(CheckOwner(search, directory.get()));
  if (search.hierarchy.unified) {
    TRY(CheckControlFiles(directory.get()));
    TRY(sys::CheckAccess(search.mount.get(), "cgroup.procs", W_OK)
            .With("no process can be moved there from where this one is"));
    TRY(EnableControllers(directory.get(), search.wanted, true));
  }
  return Place{search.hierarchy.unified, search.PathOf(below), std::move(directory)};
}

// Somebody's own choice: it must be the caller's and, on the unified hierarchy, hold no process.
Result<Place> TryParent(const Search& search, const std::string& below) {
  UniqueFd directory = TRY(OpenCgroup(search.mount.get(), below));
  TRY(CheckOwner(search, directory.get()));
  if (search.hierarchy.unified) {
    TRY(CheckControlFiles(directory.get()));
    TRY(EnableControllers(directory.get(), search.wanted, false));
  }
  return Place{search.hierarchy.unified, search.PathOf(below), std::move(directory)};
}

Result<Place> TryBoth(const Search& search) {
  Result<Place> own = TryOwn(search);
  if (own.ok()) return own;
  Result<Place> delegated = TryDelegated(search);
  if (delegated.ok()) return delegated;
  std::optional<std::string> own_below = BelowMount(search.hierarchy, search.hierarchy.own_path);
  std::string own_path = own_below ? search.PathOf(*own_below) : search.hierarchy.own_path;
  const Error& cause = delegated.error();
  return Error(cause.kind,
               Text("the own cgroup '", Printable(own_path), "': ", own.error().text, "; '",
                    Printable(search.PathOf(DelegatedBelow(search.uid))), "': ", cause.text),
               cause.err);
}

Result<Place> Find(const Hierarchy& hierarchy, const std::vector<Controller>& wanted,
                   const std::string& parent) {
  if (hierarchy.mount_point.empty())
    return Error(Kind::kUnsupported, "the cgroup hierarchy that holds it is not mounted here");
  if (hierarchy.read_only)
    return Error(Kind::kUnsupported,
                 Text("'", Printable(hierarchy.mount_point), "' is mounted read-only"), EROFS);
  Search search{hierarchy, wanted, ::geteuid(), TRY(OpenMount(hierarchy))};
  if (parent.empty()) return TryBoth(search);
  return TryParent(search, parent).With(Text("'", Printable(search.PathOf(parent)), "'"));
}

// cpuset and io, which a user's manager does not hand on by itself, nor taskcell-probe on v1.
std::string HandOn(const Hierarchy& hierarchy, std::string_view name, uid_t uid) {
  if (hierarchy.unified) {
    return Text("the administrator must hand ", name,
                " on to the cgroup: with systemd, systemctl edit user@", uid,
                ".service, [Service] Delegate=cpu cpuset io memory pids, and a new login; without, "
                "taskcell-probe delegate, or +",
                name, " in each cgroup.subtree_control above");
  }
  std::string place = Text(hierarchy.mount_point, "/", DelegatedBelow(uid));
  return Text("the administrator must make a directory of the user's own: mkdir -p ", place, "; ",
              name == "cpuset" ? Text("cd ", hierarchy.mount_point, " && for d in taskcell ",
                                      DelegatedBelow(uid),
                                      "; do for f in cpus mems; do cat $d/../cpuset.effective_$f > "
                                      "$d/cpuset.$f; done; done; ")
                               : "",
              "chown ", uid, " ", place);
}

// What the same judgement says that taskcell-probe prints.
std::string WhatToDo(const Hierarchy& hierarchy, const std::vector<Controller>& wanted) {
  Result<sys::RootedTree> host = sys::RootedTree::OpenHost();
  if (!host.ok()) return "run taskcell-probe";
  Subject subject;
  subject.uid = ::geteuid();
  Surroundings around = ReadSurroundings(host.value(), subject);
  Chain chain = ReadChain(host.value(), hierarchy, around.uid);
  Complete(host.value(), chain, around);
  std::string unknown;
  for (Controller controller : wanted) {
    if (controller == Controller::kCpuset || controller == Controller::kIo) {
      return HandOn(hierarchy, Name(controller), around.uid);
    }
    Diagnosis diagnosis = DiagnoseChain(chain, around, controller);
    if (diagnosis.state == LimitState::kNo) return diagnosis.fix;
    if (diagnosis.state == LimitState::kUnknown) unknown = diagnosis.reason;
  }
  if (!unknown.empty()) return "find out first why " + unknown;
  return "all that can be read allows it, so a security module or a filter refused it: look into "
         "the kernel's log (with SELinux: setsebool -P container_manage_cgroup on)";
}

}  // namespace

Result<Place> FindPlace(const Hierarchy& hierarchy, const std::vector<Controller>& wanted,
                        const std::string& parent) {
  Result<Place> place = Find(hierarchy, wanted, parent);
  if (place.ok()) return place;
  Error error = std::move(place).error();
  if (parent.empty()) {
    error.text += Text(". What to do: ", WhatToDo(hierarchy, wanted));
  } else {
    error.text +=
        ". It must be a cgroup of the caller's, without processes, that has the controllers";
  }
  return Unenforced(wanted, std::move(error));
}

}  // namespace taskcell::cgroup

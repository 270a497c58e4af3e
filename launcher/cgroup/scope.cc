#include "launcher/cgroup/scope.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "launcher/base/text.h"
#include "launcher/cgroup/layout.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"
#include "launcher/sys/signals.h"
#include "launcher/sys/socket.h"

namespace taskcell::cgroup {
namespace {

constexpr char kBusctl[] = "/usr/bin/busctl";
constexpr int kCallTimeoutMs = 10'000;
constexpr int kMoveRounds = 1000;
constexpr int kRoundMs = 5;

// The user manager's own bus; a path that is no socket of the caller's is not talked to.
Result<std::string> BusPath(uid_t uid) {
  std::string path = Text("/run/user/", uid, "/bus");
  struct stat info = TRY(sys::StatAt(AT_FDCWD, path));
  if (S_ISSOCK(info.st_mode) && info.st_uid == uid) return path;
  return Error(Kind::kUnsupported, Text("'", path, "' is no socket of this user's"));
}

// This process's cgroup on the unified hierarchy; empty: it is in none.
Result<std::string> OwnCgroup() {
  Layout layout = TRY(ReadLayout());
  for (const Hierarchy& hierarchy : layout.hierarchies) {
    if (hierarchy.unified) return hierarchy.own_path;
  }
  return std::string();
}

}  // namespace

Status EnterOwnScope() {
  uid_t uid = ::geteuid();
  if (uid == 0) return Error(Kind::kUnsupported, "root has no manager of its own");
  std::string own = TRY(OwnCgroup());
  if (!own.starts_with("/user.slice/"))
    return Error(Kind::kUnsupported, "this process is in no session of a user's");
  if (own.find(Text("/user@", uid, ".service/")) != own.npos)
    return Error(Kind::kUnsupported,
                 "this process would leave the unit of that manager that it is in, and its limits");
  std::string bus = TRY(BusPath(uid));
  std::string pid = Text(sys::OwnPid());
  std::string scope = Text("taskcell-", pid, "-", sys::MonotonicUs(), ".scope");
  // Started by absolute path, with an empty environment: neither PATH nor a bus address of the
  // caller's decides who is asked.
  sys::ProgramResult called = TRY(sys::RunProgram({kBusctl,
                                                   "--address=unix:path=" + bus,
                                                   "--timeout=5",
                                                   "call",
                                                   "org.freedesktop.systemd1",
                                                   "/org/freedesktop/systemd1",
                                                   "org.freedesktop.systemd1.Manager",
                                                   "StartTransientUnit",
                                                   "ssa(sv)a(sa(sv))",
                                                   scope,
                                                   "fail",
                                                   "4",
                                                   "Description",
                                                   "s",
                                                   "A cell of taskcell",
                                                   "PIDs",
                                                   "au",
                                                   "1",
                                                   pid,
                                                   "Delegate",
                                                   "b",
                                                   "true",
                                                   "CollectMode",
                                                   "s",
                                                   "inactive-or-failed",
                                                   "0"},
                                                  kCallTimeoutMs));
  if (called.exit.status != 0 || called.exit.signal != 0)
    return Error(Kind::kUnsupported, Text("busctl: ", Printable(Trim(called.errors))));
  // The answer comes before the move.
  for (int round = 0; round < kMoveRounds; ++round) {
    if (TRY(OwnCgroup()).ends_with("/" + scope)) return Ok();
    TRY(sys::Poll(-1, 0, kRoundMs));
  }
  return Error(Kind::kSystem, Text("systemd made ", scope, " but did not move this process there"));
}

}  // namespace taskcell::cgroup

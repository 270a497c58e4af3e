#include "launcher/native/id_maps.h"

#include <unistd.h>

#include <cerrno>

#include "launcher/base/accounts.h"
#include "launcher/base/text.h"
#include "launcher/native/free_ids.h"
#include "launcher/sys/file.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/process.h"

namespace taskcell::native {
namespace {

constexpr int kMapProgramTimeoutMs = 5000;
constexpr std::string_view kRunIdDigits = "0123456789abcdef";

// A number that differs from run to run: the first 15 hex digits of the run id.
uint64_t NumberOf(std::string_view run_id) {
  uint64_t number = 0;
  for (char digit : run_id.substr(0, 15)) number = number * 16 + (kRunIdDigits.find(digit) & 15U);
  return number;
}

Error NoRange(uid_t uid, std::string_view file) {
  return Error(
      Kind::kUnsupported,
      Text("uid ", uid, " has no range in ", file, "; the administrator can grant one: usermod ",
           file == "/etc/subuid" ? "--add-subuids" : "--add-subgids", " FIRST-LAST USER"));
}

// newuidmap and newgidmap serve a process only in the login group of its user.
Status CheckLoginGroup() {
  constexpr std::size_t kMaxPasswdBytes = std::size_t{4} << 20U;
  Result<std::string> passwd = sys::ReadFile(AT_FDCWD, "/etc/passwd", kMaxPasswdBytes);
  if (!passwd.ok()) return Ok();  // ignoring: the account may be elsewhere, and they will say
  std::optional<uint32_t> login = LoginGroup(passwd.value(), ::getuid());
  if (!login || *login == ::getgid()) return Ok();
  return Error(Kind::kUnsupported,
               Text("your group is ", ::getgid(),
                    ", and newuidmap serves you only in the group of "
                    "your account, ",
                    *login,
                    ": start this from there (not from newgrp or sg; as "
                    "root: setpriv --reuid ",
                    ::getuid(), " --regid ", *login, " --clear-groups), or use --userns=own"));
}

Result<OutsideIds> ChooseSubids(const cell::CellPlan& plan) {
  FreeSubordinateIds free = TRY(ReadFreeSubordinateIds(::getuid(), ::getgid()));
  const SubordinateIds& granted = free.ids;
  if (granted.uids.empty()) return NoRange(::getuid(), "/etc/subuid");
  if (granted.gids.empty()) return NoRange(::getuid(), "/etc/subgid");
  if (TRY(sys::HasNoNewPrivileges())) {
    return Error(
        Kind::kUnsupported,
        "newuidmap gets no privilege here, since no_new_privs is set: start this without it "
        "(NoNewPrivileges=no of a systemd unit), or use --userns=own");
  }
  if (::access("/usr/bin/newuidmap", X_OK) != 0 || ::access("/usr/bin/newgidmap", X_OK) != 0) {
    return Error(Kind::kUnsupported,
                 "newuidmap and newgidmap are not in /usr/bin: install them (Debian: uidmap)");
  }
  TRY(CheckLoginGroup());
  uint64_t pick = NumberOf(plan.run_id);
  return OutsideIds{MapWay::kSubids, PickId(granted.uids, pick), PickId(granted.gids, pick),
                    std::move(free.shared_with)};
}

Result<OutsideIds> ChooseOwn() {
  OutsideIds own{MapWay::kOwn, ::geteuid(), ::getegid()};
  if (own.gid == 0) {
    return Error(Kind::kDenied,
                 "your group is root's (gid 0), and a cell under your own ids would have it. Use "
                 "--userns=subids, or start from another group (as root: setpriv --reuid USER "
                 "--regid GROUP --clear-groups)",
                 EPERM);
  }
  std::vector<gid_t> groups = TRY(sys::GetGroups());
  TRY(CheckFrozenGroups(groups, own.gid));
  return own;
}

std::string MapLine(uint32_t inside, uint32_t outside) { return Text(inside, " ", outside, " 1"); }

Status RunMapProgram(const std::string& program, pid_t pid, uint32_t inside, uint32_t outside) {
  sys::ProgramResult result = TRY(sys::RunProgram(
      {program, std::to_string(pid), std::to_string(inside), std::to_string(outside), "1"},
      kMapProgramTimeoutMs));
  if (result.exit.signal == 0 && result.exit.status == 0) return Ok();
  return Error(Kind::kDenied,
               Text(program, " refused id ", outside, ": ", Printable(Trim(result.errors)),
                    " (it needs its set-user-ID bit or file capability, a range in /etc/subuid and "
                    "/etc/subgid, and a caller without no_new_privs)"));
}

}  // namespace

Result<UserNamespaceMode> ParseUserNamespaceMode(std::string_view text) {
  if (text == "auto") return UserNamespaceMode::kAuto;
  if (text == "own") return UserNamespaceMode::kOwn;
  if (text == "subids") return UserNamespaceMode::kSubids;
  if (text == "prefer-subids") return UserNamespaceMode::kPreferSubids;
  return Error(Kind::kUsage,
               Text("'", Printable(text), "' is not auto, own, subids or prefer-subids"));
}

std::string_view Name(MapWay way) {
  switch (way) {
    case MapWay::kOwn:
      return "own";
    case MapWay::kRoot:
      return "root";
    case MapWay::kSubids:
      return "subordinate";
  }
  return "unknown";
}

Status CheckFrozenGroups(const std::vector<gid_t>& groups, gid_t gid) {
  std::string foreign;
  for (gid_t group : groups) {
    if (group != gid) foreign += Text(foreign.empty() ? "" : ", ", group);
  }
  if (foreign.empty()) return Ok();
  return Error(Kind::kDenied,
               Text("you are in the supplementary groups ", foreign,
                    ", and the kernel keeps them for a cell under your own id: what they may read, "
                    "the cell could. Use --userns=subids (needs the package uidmap and a range in "
                    "/etc/subuid and /etc/subgid), or start from a process without groups (as "
                    "root: setpriv --reuid USER --regid GROUP --clear-groups)"),
               EPERM);
}

Result<OutsideIds> ChooseOutsideIds(UserNamespaceMode mode, const cell::CellPlan& plan) {
  if (::geteuid() == 0) {
    if (mode == UserNamespaceMode::kSubids) {
      return Error(Kind::kUsage,
                   "--userns=subids is for ordinary users; root maps any id by --uid and --gid");
    }
    return OutsideIds{MapWay::kRoot, plan.uid, plan.gid};
  }
  switch (mode) {
    case UserNamespaceMode::kSubids:
      return ChooseSubids(plan);
    case UserNamespaceMode::kOwn:
      return ChooseOwn();
    case UserNamespaceMode::kPreferSubids: {
      Result<OutsideIds> subordinate = ChooseSubids(plan);
      return subordinate.ok() ? std::move(subordinate) : ChooseOwn();
    }
    case UserNamespaceMode::kAuto:
      break;
  }
  Result<OutsideIds> own = ChooseOwn();
  if (own.ok()) return own;
  Result<OutsideIds> subordinate = ChooseSubids(plan);
  return subordinate.ok() ? std::move(subordinate) : std::move(own);
}

std::optional<OutsideIds> OtherWay(UserNamespaceMode mode, const OutsideIds& outside) {
  bool subordinate_was_a_wish =
      mode == UserNamespaceMode::kPreferSubids && outside.way == MapWay::kSubids;
  if (!subordinate_was_a_wish) return std::nullopt;
  Result<OutsideIds> own = ChooseOwn();
  return own.ok() ? std::optional(own.value()) : std::nullopt;
}

Status WriteIdMaps(pid_t pid, const cell::CellPlan& plan, const OutsideIds& outside) {
  if (outside.way == MapWay::kSubids) {
    TRY(RunMapProgram("/usr/bin/newuidmap", pid, plan.uid, outside.uid));
    return RunMapProgram("/usr/bin/newgidmap", pid, plan.gid, outside.gid);
  }
  sys::Proc proc = TRY(sys::Proc::Open());
  TRY(proc.Write(Text(pid, "/uid_map"), MapLine(plan.uid, outside.uid)));
  return proc.Write(Text(pid, "/gid_map"), MapLine(plan.gid, outside.gid));
}

Status WriteOwnIdMaps(const cell::CellPlan& plan, const OutsideIds& outside) {
  sys::Proc proc = TRY(sys::Proc::Open());
  TRY(proc.Write("self/setgroups", "deny"));
  TRY(proc.Write("self/uid_map", MapLine(plan.uid, outside.uid)));
  return proc.Write("self/gid_map", MapLine(plan.gid, outside.gid));
}

}  // namespace taskcell::native

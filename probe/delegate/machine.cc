#include "probe/delegate/machine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "probe/delegate/in_use.h"
#include "probe/facts/unit_file.h"

namespace taskcell::probe::delegate {
namespace {

constexpr int kProgramTimeoutMs = 60'000;
constexpr std::size_t kMaxControllersBytes = 4096;
constexpr uint32_t kDirectoryMode = 0755;
constexpr uint32_t kPermissions = 07777;

// Where a change is made: its directory, open, and its name in it.
struct Spot {
  UniqueFd directory;
  std::string name;
};

Error LinkInTheWay(const std::string& path) {
  return Error(Kind::kDenied,
               Text(Printable(path),
                    " is, or lies behind, a symbolic link, which is not followed: "
                    "take the link away first"),
               ELOOP);
}

Result<Spot> SpotOf(const Machine& machine, const std::string& path) {
  std::size_t slash = path.rfind('/');
  std::string above = slash == 0 ? "." : path.substr(1, slash - 1);
  Result<UniqueFd> directory =
      sys::OpenAt2(machine.root.get(), above, O_PATH | O_DIRECTORY, sys::kResolveBeneath);
  if (!directory.ok() && directory.error().err == ELOOP) return LinkInTheWay(path);
  if (!directory.ok()) return std::move(directory).error();
  return Spot{std::move(directory).value(), path.substr(slash + 1)};
}

bool IsKind(const struct stat& info, ChangeKind kind) {
  if (kind == ChangeKind::kDirectory) return S_ISDIR(info.st_mode);
  if (kind == ChangeKind::kFile || kind == ChangeKind::kControllers) return S_ISREG(info.st_mode);
  return true;
}

std::string FreshName(const std::string& name) { return name + ".new"; }

// Written aside and then put in place, so that it is never seen by half.
Status PutFile(const Spot& spot, std::string_view text, uint32_t mode, uint32_t uid, uint32_t gid) {
  std::string fresh = FreshName(spot.name);
  (void)sys::RemoveFile(spot.directory.get(), fresh);  // ignoring: only a killed process left one
  UniqueFd file = TRY(sys::OpenAt2(spot.directory.get(), fresh, O_WRONLY | O_CREAT | O_EXCL,
                                   sys::kResolveBeneath, 0600));
  TRY(sys::WriteAll(file.get(), text));
  if (uid != ::geteuid() || gid != ::getegid()) TRY(sys::ChangeOwner(file.get(), uid, gid));
  TRY(sys::ChangeMode(file.get(), mode & kPermissions));
  return sys::Rename(spot.directory.get(), fresh, spot.name);
}

Status PutDirectory(const Spot& spot) {
  TRY(sys::MakeDirectory(spot.directory.get(), spot.name, kDirectoryMode));
  struct stat info = TRY(sys::StatAt(spot.directory.get(), spot.name));
  if ((info.st_mode & kPermissions) == kDirectoryMode) return Ok();
  return sys::ChangeModeAt(spot.directory.get(), spot.name, kDirectoryMode);  // past the umask
}

Status PutOwner(const Spot& spot, uint32_t uid, uint32_t gid) {
  UniqueFd file = TRY(
      sys::OpenAt2(spot.directory.get(), spot.name, O_RDONLY | O_NONBLOCK, sys::kResolveBeneath));
  return sys::ChangeOwner(file.get(), uid, gid);
}

// The words of `wanted` that are in `held`, or that are not.
std::string Which(std::string_view wanted, std::string_view held, bool in_it, char sign) {
  std::string chosen;
  std::vector<std::string_view> there = Words(held);
  for (std::string_view word : Words(wanted)) {
    bool is_held = std::find(there.begin(), there.end(), word) != there.end();
    if (is_held == in_it) chosen += Text(chosen.empty() ? "" : " ", sign, word);
  }
  return chosen;
}

Status MakeNow(const Machine& machine, const Change& change, const Before& now) {
  if (change.kind == ChangeKind::kCommand) {
    if (change.command.empty()) return Ok();
    return machine.run(change.command);
  }
  Spot spot = TRY(SpotOf(machine, change.path));
  switch (change.kind) {
    case ChangeKind::kDirectory:
      return PutDirectory(spot);
    case ChangeKind::kOwner:
      return PutOwner(spot, change.uid, change.gid);
    case ChangeKind::kControllers:
      return sys::WriteControl(spot.directory.get(), spot.name,
                               Which(change.text, now.text, false, '+'));
    case ChangeKind::kFile:
      return PutFile(spot, change.text, change.mode, ::geteuid(), ::getegid());
    case ChangeKind::kCommand:
      break;
  }
  return Ok();
}

bool HasEffect(const Change& change, const Before& now) {
  switch (change.kind) {
    case ChangeKind::kDirectory:
      return now.present;
    case ChangeKind::kOwner:
      return now.present && now.uid == change.uid && now.gid == change.gid;
    case ChangeKind::kControllers:
      return now.present && Which(change.text, now.text, false, '+').empty();
    case ChangeKind::kFile:
      return now.present && now.text == change.text && (now.mode & kPermissions) == change.mode;
    case ChangeKind::kCommand:
      return now.present;
  }
  return false;
}

// A directory that others could put something else into is no place for root's changes.
Status CheckTrusted(const Change& change, const Before& now) {
  if (change.kind != ChangeKind::kDirectory || !now.present) return Ok();
  bool trusted =
      (now.uid == ::geteuid() || now.uid == change.uid) && (now.mode & (S_IWGRP | S_IWOTH)) == 0;
  if (trusted) return Ok();
  return Error(Kind::kDenied, Text(Printable(change.path), " is there already and belongs to uid ",
                                   now.uid, " or may be written by others: remove it first"));
}

Result<std::string> UndoFile(const Machine& machine, const Change& change, const Before& now) {
  const Before& before = change.before;
  Result<Spot> spot = SpotOf(machine, change.path);
  if (!spot.ok() && spot.error().err == ENOENT) return std::string();  // its directory is gone
  if (!spot.ok()) return std::move(spot).error();
  int directory = spot->directory.get();
  // ignoring: only a killed process left one
  (void)sys::RemoveFile(directory, FreshName(spot->name));
  bool is_before = now.present == before.present && now.text == before.text;
  if (is_before) return std::string();
  if (now.text != change.text) return std::string("its text was changed since");
  if (before.present)
    TRY(PutFile(spot.value(), before.text, before.mode, before.uid, before.gid));
  else
    TRY(sys::RemoveFile(directory, spot->name));
  return std::string();
}

Result<std::string> UndoDirectory(const Machine& machine, const Change& change, const Before& now) {
  if (change.before.present || !now.present) return std::string();
  Spot spot = TRY(SpotOf(machine, change.path));
  Status removed = sys::RemoveDirectory(spot.directory.get(), spot.name);
  if (removed.ok()) return std::string();
  int err = removed.error().err;
  if (err != EBUSY && err != ENOTEMPTY) return std::move(removed).error();
  return Text("it is in use: ", WhatIsIn(machine.root.get(), change.path));
}

Result<std::string> UndoControllers(const Machine& machine, const Change& change,
                                    const Before& now) {
  if (!change.before.present || !now.present) return std::string();
  std::string ours = Which(change.text, change.before.text, false, ' ');
  std::string off = Which(ours, now.text, true, '-');
  if (off.empty()) return std::string();
  Spot spot = TRY(SpotOf(machine, change.path));
  std::string limited = LimitedBelow(spot.directory.get(), ours);
  if (!limited.empty()) return Text("limits of other cgroups need it: ", Printable(limited));
  Status written = sys::WriteControl(spot.directory.get(), spot.name, off);
  if (!written.ok() && written.error().err == EBUSY)
    return std::string("other cgroups below hand the controllers on");
  if (!written.ok()) return std::move(written).error();
  return std::string();
}

Result<std::string> UndoCommand(const Machine& machine, const Change& change, const Before& now) {
  bool is_undone = !change.path.empty() && (change.before.present || !now.present);
  if (change.undo.empty() || is_undone) return std::string();
  std::string processes = change.text.empty() ? "" : ProcessesIn(machine.root.get(), change.text);
  if (!processes.empty()) return Text("it would end processes of the user: ", processes);
  TRY(machine.run(change.undo));
  return std::string();
}

}  // namespace

Result<Machine> OpenThisMachine() {
  Machine machine;
  machine.root = TRY(sys::Open("/", O_PATH | O_DIRECTORY));
  machine.run = [](const std::vector<std::string>& argv) -> Status {
    sys::ProgramResult ran = TRY(sys::RunProgram(argv, kProgramTimeoutMs));
    if (ran.exit.signal == 0 && ran.exit.status == 0) return Ok();
    return Error(
        Kind::kSystem,
        Text(argv[0], ran.exit.signal == 0 ? " failed with status " : " was ended by signal ",
             ran.exit.signal == 0 ? ran.exit.status : ran.exit.signal, ": ",
             Printable(Trim(ran.errors))));
  };
  return machine;
}

Result<Before> Look(const Machine& machine, const Change& change) {
  Before before;
  if (change.path.empty()) return before;
  Result<Spot> spot = SpotOf(machine, change.path);
  if (!spot.ok() && spot.error().err == ENOENT) return before;
  if (!spot.ok()) return std::move(spot).error();
  Result<struct stat> info = sys::StatAt(spot->directory.get(), spot->name);
  if (!info.ok() && info.error().err == ENOENT) return before;
  if (!info.ok()) return std::move(info).error();
  if (S_ISLNK(info->st_mode) && change.kind != ChangeKind::kCommand)
    return LinkInTheWay(change.path);
  if (!IsKind(info.value(), change.kind))
    return Error(Kind::kDenied, Text(Printable(change.path), " is there already and is no ",
                                     change.kind == ChangeKind::kDirectory ? "directory" : "file"));
  before = {true, {}, info->st_mode, info->st_uid, info->st_gid};
  if (change.kind == ChangeKind::kControllers || change.kind == ChangeKind::kFile) {
    std::size_t most = change.kind == ChangeKind::kFile ? kMaxUnitFileBytes : kMaxControllersBytes;
    before.text = TRY(sys::ReadFile(spot->directory.get(), spot->name, most));
  }
  if (!IsUtf8(before.text))
    return Error(Kind::kUnsupported, Text(Printable(change.path),
                                          " holds bytes that are no text, which could not be "
                                          "put back: move it away first"));
  return before;
}

Result<bool> IsMade(const Machine& machine, const Change& change) {
  return HasEffect(change, TRY(Look(machine, change)));
}

Status Make(const Machine& machine, const Change& change) {
  Before now = TRY(Look(machine, change));
  TRY(CheckTrusted(change, now));
  if (HasEffect(change, now)) return Ok();
  TRY(MakeNow(machine, change, now).With(Printable(change.path)));
  if (change.path.empty() || TRY(IsMade(machine, change))) return Ok();
  return Error(Kind::kSystem, Text(Printable(change.path), " is not as it was made just now"));
}

Result<std::string> Undo(const Machine& machine, const Change& change) {
  Before now = TRY(Look(machine, change));
  switch (change.kind) {
    case ChangeKind::kDirectory:
      return UndoDirectory(machine, change, now);
    case ChangeKind::kControllers:
      return UndoControllers(machine, change, now);
    case ChangeKind::kFile:
      return UndoFile(machine, change, now);
    case ChangeKind::kCommand:
      return UndoCommand(machine, change, now);
    case ChangeKind::kOwner:
      break;
  }
  bool ours = change.before.present && HasEffect(change, now);
  if (!ours) return std::string();
  Spot spot = TRY(SpotOf(machine, change.path));
  TRY(PutOwner(spot, change.before.uid, change.before.gid));
  return std::string();
}

}  // namespace taskcell::probe::delegate

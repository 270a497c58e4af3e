#include "probe/facts/trial_namespaces.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/mount.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"

namespace taskcell::probe {
namespace {

// Whether TryUserNamespace succeeded in this process: without it nothing below can be told.
bool in_namespaces = false;

Status MapOwnIds(uid_t uid, gid_t gid) {
  // ENOENT: a kernel without it needs no such step.
  sys::Proc proc = TRY(sys::Proc::Open());
  Status denied = proc.Write("self/setgroups", "deny");
  if (!denied.ok() && denied.error().err != ENOENT) return denied;
  TRY(proc.Write("self/uid_map", Text("0 ", uid, " 1")));
  return proc.Write("self/gid_map", Text("0 ", gid, " 1"));
}

Status EnterUserNamespace(int other_flags) {
  uid_t uid = ::geteuid();
  gid_t gid = ::getegid();
  TRY(sys::Unshare(CLONE_NEWUSER | other_flags));
  return MapOwnIds(uid, gid);
}

Status EnterNamespaces() {
  TRY(EnterUserNamespace(CLONE_NEWNS));
  return sys::MakeAllMountsPrivate();  // where AppArmor's restriction shows
}

bool IsLoaded(const TrialGround& ground, std::string_view type) {
  std::vector<std::string_view> words = Words(ground.filesystems);
  return std::find(words.begin(), words.end(), type) != words.end();
}

Tried Made(const Result<UniqueFd>& mount) { return mount.ok() ? Works() : Failed(mount.error()); }

Tried NoNamespaces() { return Untried("no user namespace to try it in"); }

// Process file systems belong to a pid namespace, which begins with a child.
Tried MakeProc(std::initializer_list<sys::FileSystemOption> options) {
  if (!in_namespaces) return NoNamespaces();
  Result<sys::Cloned> cloned = sys::CloneProcess(CLONE_NEWPID);
  if (!cloned.ok()) return Failed(cloned.error());
  if (cloned->in_child) {
    Result<UniqueFd> mount = sys::MakeFileSystem("proc", options, MOUNT_ATTR_NOSUID);
    sys::ExitNow(mount.ok() ? 0 : mount.error().err);
  }
  Result<sys::ExitInfo> ended = cloned->child.Wait();
  if (!ended.ok() || ended->signal != 0)
    return Untried("the child of the new pid namespace was killed");
  return ended->status == 0 ? Works() : Failed(ended->status, "mount of proc");
}

Result<UniqueFd> OtherUserNamespace() {
  sys::Pipe pipe = TRY(sys::MakePipe());
  sys::Cloned cloned = TRY(sys::CloneProcess(CLONE_NEWUSER));
  if (cloned.in_child) {
    pipe.write_end.Reset();
    std::array<char, 1> end;
    (void)sys::Read(pipe.read_end.get(), end);  // until the parent is done
    sys::ExitNow(0);
  }
  sys::Proc proc = TRY(sys::Proc::Open());
  TRY(proc.Write(Text(cloned.child.pid(), "/uid_map"), "0 100000 65536"));
  TRY(proc.Write(Text(cloned.child.pid(), "/gid_map"), "0 100000 65536"));
  return sys::Open(Text("/proc/", cloned.child.pid(), "/ns/user"), O_RDONLY);
}

std::string TypeName(uint64_t magic) {
  switch (magic) {
    case 0xEF53:
      return "ext4";
    case 0x58465342:
      return "xfs";
    case 0x9123683E:
      return "btrfs";
    case 0x01021994:
      return "tmpfs";
    case 0x794C7630:
      return "overlay";
    case 0x2FC12FC1:
      return "zfs";
    default:
      return Text("file system type ", magic);
  }
}

uint64_t TypeOf(const std::string& path) {
  Result<UniqueFd> directory = sys::Open(path, O_PATH | O_DIRECTORY);
  if (!directory.ok()) return 0;
  Result<sys::FileSystem> system = sys::FileSystemOf(directory->get());
  return system.ok() ? system->type : 0;
}

// On a detached copy of the mount that `path` is on. The detail names both.
Tried TryIdMappedAt(const std::string& path, int user_namespace_fd) {
  Result<UniqueFd> directory = sys::Open(path, O_PATH | O_DIRECTORY);
  if (!directory.ok()) return Untried(path + " cannot be opened");
  std::string on = Text(path, " (", TypeName(TypeOf(path)), ")");
  Result<UniqueFd> mount = sys::CloneMount(directory->get(), false);
  Status mapped =
      mount.ok() ? sys::MapMountIds(mount->get(), user_namespace_fd) : Status(mount.error());
  return mapped.ok() ? Works(on) : Failed(mapped.error().err, on);
}

}  // namespace

Tried Failed(int err, std::string step) {
  bool absent =
      err == ENOSYS || err == EINVAL || err == ENODEV || err == EOPNOTSUPP || err == E2BIG;
  bool forbidden = err == EPERM || err == EACCES || err == ENOSPC || err == EUSERS;
  Outcome outcome = absent ? Outcome::kAbsent : forbidden ? Outcome::kForbidden : Outcome::kUnknown;
  return {outcome, err, std::move(step)};
}

Tried Failed(const Error& error) { return Failed(error.err, error.text); }

Tried TryUserNamespace(const TrialGround&) {
  Status entered = EnterNamespaces();
  in_namespaces = entered.ok();
  return entered.ok() ? Works() : Failed(entered.error());
}

Tried TryUserNamespaceDepth(const TrialGround&) {
  constexpr int kMostLevels = 64;  // every kernel so far stops at 33
  int levels = 0;
  while (levels < kMostLevels && EnterUserNamespace(0).ok()) ++levels;
  return levels > 0 ? Works(Text(levels, " more levels")) : Untried("not even one");
}

Tried TryMountApi(const TrialGround&) {
  if (!in_namespaces) return NoNamespaces();
  return Made(sys::MakeFileSystem("tmpfs", {}, MOUNT_ATTR_NOSUID));
}

Tried TryTmpfs(const TrialGround&) {
  if (!in_namespaces) return NoNamespaces();
  return Made(
      sys::MakeFileSystem("tmpfs", {{"size", "1m"}, {"nr_inodes", "16"}}, MOUNT_ATTR_NOSUID));
}

Tried TryMountAttributes(const TrialGround&) {
  if (!in_namespaces) return NoNamespaces();
  Result<UniqueFd> mount = sys::MakeFileSystem("tmpfs", {}, 0);
  if (!mount.ok()) return Untried("no mount to try it on");
  Status set =
      sys::SetMountAttributes(mount->get(), MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSYMFOLLOW, 0, false);
  return set.ok() ? Works() : Failed(set.error());
}

Tried TryOverlay(const TrialGround& ground) {
  if (!in_namespaces) return NoNamespaces();
  if (!IsLoaded(ground, "overlay")) return Untried("not loaded, and trying would load it");
  return Made(sys::MakeFileSystem("overlay", {{"lowerdir", "/usr:/etc"}}, MOUNT_ATTR_RDONLY));
}

Tried TryProc(const TrialGround&) { return MakeProc({}); }

Tried TryProcSubset(const TrialGround&) { return MakeProc({{"subset", "pid"}}); }

Tried TryIdMapped(const TrialGround& ground) {
  if (::geteuid() != 0) return Untried("only root may map the ids of a mount of the host");
  Result<UniqueFd> other = OtherUserNamespace();
  if (!other.ok()) return Untried("no user namespace to map with");
  std::string home = ground.home.empty() ? "/" : ground.home;
  Tried tried = TryIdMappedAt(home, other->get());
  std::vector<uint64_t> types = {TypeOf(home)};
  for (const char* path : {"/", "/tmp", "/var"}) {
    uint64_t type = TypeOf(path);
    if (std::find(types.begin(), types.end(), type) != types.end()) continue;
    types.push_back(type);
    Tried more = TryIdMappedAt(path, other->get());
    tried.detail += Text(more.outcome == Outcome::kWorks ? "; also " : "; not ", more.detail);
  }
  return tried;
}

}  // namespace taskcell::probe

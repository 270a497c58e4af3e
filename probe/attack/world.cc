#include "probe/attack/world.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/xattr.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/roots.h"

namespace taskcell::attack {
namespace {

constexpr std::size_t kMaxProgramBytes = 16U << 20U;
constexpr std::size_t kMaxHostFileBytes = 4U << 20U;
constexpr uid_t kNobody = 65534;
constexpr mode_t kProgramMode = 0755;
constexpr mode_t kSecretMode = 0644;
constexpr std::string_view kPurpose = "attack";

Status PutFile(int dir_fd, const std::string& name, std::string_view content, mode_t mode) {
  UniqueFd file = TRY(sys::OpenAt2(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                   sys::kResolveBeneath, 0600));
  TRY(sys::WriteAll(file.get(), content));
  return sys::ChangeMode(file.get(), mode);
}

// Size, time of change, mode and owner: whatever is done to a file changes one of them.
std::string Fingerprint(const std::string& path) {
  Result<struct stat> info = sys::StatAt(AT_FDCWD, path);
  if (!info.ok()) return info.error().text;
  return Text(info->st_ino, ' ', info->st_size, ' ', info->st_mode, ' ', info->st_uid, ' ',
              info->st_mtim.tv_sec, '.', info->st_mtim.tv_nsec);
}

// Mounts where a cell's would show, had it gone astray: not those of other containers and media.
Result<std::string> MountTable() {
  std::string found;
  std::string text = TRY(sys::ReadFile(AT_FDCWD, "/proc/self/mountinfo", kMaxHostFileBytes));
  for (std::string_view line : Split(text, '\n')) {
    constexpr std::size_t kMountPoint = 4;
    std::vector<std::string_view> words = Words(line);
    if (words.size() <= kMountPoint) continue;
    for (std::string_view place : {"/proc", "/dev", "/etc", "/usr", "/sys", "/tmp", "/workspace"}) {
      if (words[kMountPoint] == "/" || cell::IsAtOrBelow(words[kMountPoint], place))
        found += Text(line, '\n');
    }
  }
  return found;
}

}  // namespace

std::vector<std::string> RemoveAbandoned(bool dry_run) {
  std::vector<std::string> paths;
  for (const mounts::AbandonedScratch& scratch : mounts::RemoveAbandonedScratch(dry_run)) {
    if (scratch.purpose == kPurpose && !dry_run) BaitObjects::Forget(scratch.run_id);
    paths.push_back(scratch.path);
  }
  return paths;
}

Result<World> World::Make(const std::string& attacker, const std::string& run_id) {
  (void)RemoveAbandoned(false);  // ignoring what it was
  World world(TRY(mounts::ScratchDirectory::MakePassable(kPurpose, run_id)));
  TRY(world.MakeFiles(attacker));
  TRY(world.MakeRoots());
  world.bait_.emplace(
      TRY(Bait::Lay(world.program(), world.scratch_.path(), run_id, world.outside_)));
  TRY(world.Settle());
  return world;
}

Status World::MakeFiles(const std::string& attacker) {
  std::string program = TRY(sys::ReadFile(AT_FDCWD, attacker, kMaxProgramBytes));
  int scratch = scratch_.fd();
  TRY(PutFile(scratch, "attacker", program, kProgramMode));
  if (::geteuid() == 0) {
    UniqueFd own = TRY(sys::OpenAt2(scratch, "attacker", O_RDONLY, sys::kResolveBeneath));
    TRY(sys::ChangeOwner(own.get(), kNobody, kNobody));
  }
  TRY(PutFile(scratch, "secret", "nothing of a cell reads this\n", kSecretMode));
  for (const char* name : {"tools", "work"}) TRY(sys::MakeDirectory(scratch, name, kProgramMode));
  UniqueFd work = TRY(sys::OpenAt2(scratch, "work", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath));
  TRY(sys::ChangeMode(work.get(), 01777));
  pin_ = TRY(sys::OpenAt2(scratch, "tools", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath));
  TRY(sys::ChangeMode(pin_.get(), kProgramMode));
  TRY(PutFile(pin_.get(), "attacker", program, kProgramMode));
  struct stat info = TRY(sys::Stat(pin_.get()));
  tools_ = {scratch_.path() + "/tools",
            kToolsInside,
            cell::EntryKind::kDirectory,
            info.st_dev,
            info.st_ino,
            false};
  if (::geteuid() == 0) TRY(MakePrivilegedTools(program));
  outside_.scratch = scratch_.path() + "/work";
  outside_.secret = scratch_.path() + "/secret";
  outside_.gateway_uid = ::geteuid() == 0 ? kNobody : ::geteuid();  // as the controls run
  return Ok();
}

Status World::MakeRoots() {
  int scratch = scratch_.fd();
  TRY(sys::MakeDirectory(scratch, "canary", kProgramMode));
  for (const char* name : kCanaryDirectories)
    TRY(sys::MakeDirectory(scratch, Text("canary/", name), kProgramMode));
  outside_.canary = scratch_.path() + "/canary";
  TRY(sys::MakeDirectory(scratch, "roots", kProgramMode));
  outside_.roots = scratch_.path() + "/roots";
  for (const HostileRoot& root : HostileRoots()) {
    std::string directory = Text("roots/", root.payload);
    TRY(sys::MakeDirectory(scratch, directory, kProgramMode));
    std::string link = root.relative ? "../../canary" : outside_.canary;
    TRY(sys::MakeSymbolicLink(link, scratch, Text(directory, "/", root.link)));
    for (std::string_view name : kRootDirectories) {
      if (name == root.link || name.starts_with(Text(root.link, "/"))) continue;
      TRY(sys::MakeDirectory(scratch, Text(directory, "/", name), kProgramMode));
    }
  }
  return Ok();
}

Result<Exchanger> World::Exchange(std::string_view root) const {
  const HostileRoot* hostile = FindHostileRoot(root);
  if (hostile == nullptr) return Error(Kind::kInternal, "no hostile root of that name");
  std::string directory = Text(outside_.roots, "/", root, "/");
  return Exchanger::Start(Text(directory, hostile->target), Text(directory, hostile->link));
}

// What only root can lay into a cell's way.
Status World::MakePrivilegedTools(std::string_view content) {
  constexpr mode_t kSetuid = 04755;
  constexpr mode_t kGroupOnly = 0640;
  TRY(PutFile(pin_.get(), "setuid", content, kSetuid));
  TRY(PutFile(pin_.get(), "capable", content, kProgramMode));
  TRY(PutFile(pin_.get(), "group-secret", "for one group\n", kGroupOnly));
  UniqueFd secret = TRY(sys::OpenAt2(pin_.get(), "group-secret", O_RDONLY, sys::kResolveBeneath));
  TRY(sys::ChangeOwner(secret.get(), 0, kControlGroup));
  UniqueFd capable = TRY(sys::OpenAt2(pin_.get(), "capable", O_RDONLY, sys::kResolveBeneath));
  struct vfs_cap_data data = {};
  data.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  data.data[0].permitted = 1U << CAP_NET_RAW;
  int64_t set = Call(SYS_fsetxattr, capable.get(), XATTR_NAME_CAPS, &data, XATTR_CAPS_SZ_2, 0);
  if (set == 0) outside_.capable_program = tools_.source + "/capable";
  outside_.setuid_program = tools_.source + "/setuid";
  outside_.group_secret = tools_.source + "/group-secret";
  return Ok();
}

Targets World::inside() const {
  Targets inside = outside_;
  inside.scratch = "/tmp";
  inside.gateway_uid = ::geteuid();
  std::string tools = kToolsInside;
  if (!inside.setuid_program.empty()) inside.setuid_program = tools + "/setuid";
  if (!inside.capable_program.empty()) inside.capable_program = tools + "/capable";
  if (!inside.group_secret.empty()) inside.group_secret = tools + "/group-secret";
  return inside;
}

Result<std::map<std::string, std::string>> World::Look() const {
  std::map<std::string, std::string> seen;
  for (const char* name : {"/attacker", "/secret", "/tools/attacker", "/canary"})
    seen[scratch_.path() + name] = Fingerprint(scratch_.path() + name);
  seen["the mount table"] = TRY(MountTable());
  seen["the host's name"] = TRY(sys::HostName());
  for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
                           "/proc/sys/user/max_user_namespaces", "/proc/sys/net/ipv4/ip_forward"}) {
    Result<std::string> text = sys::ReadFile(AT_FDCWD, path, kMaxHostFileBytes);
    seen[path] = text.ok() ? text.value() : text.error().text;
  }
  return seen;
}

Status World::Settle() {
  bait_->Settle();
  before_ = TRY(Look());
  return Ok();
}

std::vector<std::string> World::Changes() {
  Result<std::map<std::string, std::string>> now = Look();
  if (!now.ok()) return {Text("the host could not be looked at: ", now.error().text)};
  std::vector<std::string> changes = bait_->Changes();
  for (const auto& [what, was] : before_) {
    if (now.value()[what] != was) changes.push_back(what + " changed");
  }
  return changes;
}

}  // namespace taskcell::attack

#include "launcher/sys/classic_mount.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <optional>
#include <set>
#include <vector>

#include "launcher/base/mount_info.h"
#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount_id.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/process.h"

namespace taskcell::sys {
namespace {

// As many mounts as a plan may have, and those of every cell.
constexpr unsigned kPlaces = 256 + 128;
constexpr uint64_t kResolveBelow = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

constexpr unsigned long kNoSymlinks = 0x2000;  // ST_NOSYMFOLLOW of the kernel's linux/statfs.h

std::string PathOf(int fd) { return Text("/proc/self/fd/", fd); }

unsigned long FlagsOf(uint64_t attributes) {
  unsigned long flags = 0;
  if ((attributes & MOUNT_ATTR_RDONLY) != 0) flags |= MS_RDONLY;
  if ((attributes & MOUNT_ATTR_NOSUID) != 0) flags |= MS_NOSUID;
  if ((attributes & MOUNT_ATTR_NODEV) != 0) flags |= MS_NODEV;
  if ((attributes & MOUNT_ATTR_NOEXEC) != 0) flags |= MS_NOEXEC;
  if ((attributes & MOUNT_ATTR_NOSYMFOLLOW) != 0) flags |= MS_NOSYMFOLLOW;
  return flags;
}

Result<unsigned long> FlagsNow(const std::string& path) {
  struct statvfs info = {};
  if (::statvfs(path.c_str(), &info) < 0) return Failure(Text("statvfs '", Printable(path), "'"));
  unsigned long flags = 0;
  if ((info.f_flag & ST_RDONLY) != 0) flags |= MS_RDONLY;
  if ((info.f_flag & ST_NOSUID) != 0) flags |= MS_NOSUID;
  if ((info.f_flag & ST_NODEV) != 0) flags |= MS_NODEV;
  if ((info.f_flag & ST_NOEXEC) != 0) flags |= MS_NOEXEC;
  if ((info.f_flag & kNoSymlinks) != 0) flags |= MS_NOSYMFOLLOW;
  return flags;  // without any for access times those are kept
}

Status Remount(const std::string& path, uint64_t set) {
  unsigned long flags = TRY(FlagsNow(path)) | FlagsOf(set) | MS_REMOUNT | MS_BIND;
  if (::mount(nullptr, path.c_str(), nullptr, flags, nullptr) < 0)
    return Failure(Text("mount remount '", Printable(path), "'"));
  return Ok();
}

std::string NameOf(bool directory, unsigned number) { return Text(directory ? "d" : "f", number); }

Status MakePlaces(int stage, uid_t uid, gid_t gid) {
  Cloned cloned = TRY(CloneProcess(0));
  if (cloned.in_child) {
    Status made = SetIds(uid, gid);
    if (made.ok()) made = SetNotDumpable();  // which a change of ids takes back
    for (unsigned i = 0; i < kPlaces && made.ok(); ++i) {
      made = MakeDirectory(stage, NameOf(true, i), 0700);
      if (made.ok()) made = MakeFile(stage, NameOf(false, i), 0600);
    }
    ExitNow(made.ok() ? 0 : made.error().err);
  }
  ExitInfo ended = TRY(cloned.child.Wait());
  if (ended.signal == 0 && ended.status == 0) return Ok();
  return FailureOf(ended.status, "make places to mount on");
}

}  // namespace

Result<ClassicMounts> ClassicMounts::Make(const std::string& directory, uid_t uid, gid_t gid) {
  UniqueFd place = TRY(OpenAt2(AT_FDCWD, directory, O_PATH | O_DIRECTORY,
                               RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
  if (::mount("stage", PathOf(place.get()).c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0777") < 0)
    return Failure(Text("mount tmpfs on '", Printable(directory), "'"));
  UniqueFd stage = TRY(Open(directory, O_PATH | O_DIRECTORY));
  TRY(MakePlaces(stage.get(), uid, gid));
  return ClassicMounts(std::move(stage));
}

Result<std::string> ClassicMounts::NewPlace(bool directory) {
  unsigned& used = directory ? directories_used_ : files_used_;
  if (used < kPlaces) return NameOf(directory, used++);
  return Error(Kind::kInternal, Text("more than ", kPlaces, " mounts by mount(2)"));
}

// What is mounted there by now.
Result<UniqueFd> ClassicMounts::OpenPlace(const std::string& name) const {
  return OpenAt2(stage_.get(), name, O_PATH, kResolveBelow);
}

Result<UniqueFd> ClassicMounts::MakeFileSystem(const char* type,
                                               std::initializer_list<FileSystemOption> options,
                                               uint64_t attributes) {
  std::string data;
  for (const FileSystemOption& option : options) {
    data += Text(data.empty() ? "" : ",", option.key);
    if (option.value != nullptr) data += Text("=", option.value);
  }
  std::string name = TRY(NewPlace(true));
  UniqueFd place = TRY(OpenPlace(name));
  if (::mount(type, PathOf(place.get()).c_str(), type, FlagsOf(attributes), data.c_str()) < 0)
    return Failure(Text("mount ", type, " ", data));
  return OpenPlace(name);
}

Result<UniqueFd> ClassicMounts::Clone(int fd, bool recursive) {
  struct stat info = TRY(Stat(fd));
  std::string name = TRY(NewPlace(S_ISDIR(info.st_mode)));
  UniqueFd place = TRY(OpenPlace(name));
  unsigned long flags = MS_BIND | (recursive ? MS_REC : 0);
  if (::mount(PathOf(fd).c_str(), PathOf(place.get()).c_str(), nullptr, flags, nullptr) < 0)
    return Failure(Text("mount bind (fd ", fd, ")"));
  return OpenPlace(name);
}

Result<UniqueFd> ClassicMounts::CloneAt(int dir_fd, const char* path) {
  UniqueFd fd = TRY(OpenAt2(dir_fd, path, O_PATH | O_NOFOLLOW, 0));
  return Clone(fd.get(), false);
}

// Mounts below are found by their parents in mountinfo, which lists a parent before its children.
Status ClassicMounts::SetAttributes(int fd, uint64_t set, bool recursive) {
  TRY(Remount(PathOf(fd), set));
  if (!recursive) return Ok();
  std::set<uint64_t> tree = {TRY(MountIdOf(fd))};
  std::string mountinfo = TRY(ReadProc("self/mountinfo", kMaxMountInfoBytes));
  for (const MountInfoLine& line : TRY(ParseMountInfo(mountinfo))) {
    if (tree.count(line.parent) == 0) continue;
    tree.insert(line.id);
    TRY(Remount(line.mount_point, set));
  }
  return Ok();
}

Status ClassicMounts::Attach(int mount_fd, int target_fd) {
  if (::mount(PathOf(mount_fd).c_str(), PathOf(target_fd).c_str(), nullptr, MS_MOVE, nullptr) < 0)
    return Failure(Text("mount move (fd ", mount_fd, ")"));
  return Ok();
}

Status ClassicMounts::AttachAt(int mount_fd, int dir_fd, const char* name) {
  UniqueFd target = TRY(OpenAt2(dir_fd, name, O_PATH | O_NOFOLLOW, 0));
  return Attach(mount_fd, target.get());
}

}  // namespace taskcell::sys

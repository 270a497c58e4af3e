#include "launcher/native/host_root.h"

#include <fcntl.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::native {
namespace {

constexpr std::string_view kTopLevel[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

// ENOENT of a Result, and nothing else.
template <typename T>
bool IsAbsent(const Result<T>& result) {
  return !result.ok() && result.error().err == ENOENT;
}

Status TakeDirectory(const std::string& name, const MountTable& mounts, HostRoot& root) {
  std::string path = "/" + name;
  UniqueFd pin = TRY(PinPath(path));
  root.mounts.push_back(
      {path, cell::EntryKind::kDirectory, TRY(CloneReadOnly(pin.get(), path, mounts))});
  return Ok();
}

// /bin and friends: on a merged-/usr host links, else directories.
Status TakeTopLevel(const std::string& name, const MountTable& mounts, HostRoot& root) {
  Result<struct stat> info = sys::StatAt(AT_FDCWD, "/" + name);
  if (IsAbsent(info)) return Ok();
  if (!info.ok()) return std::move(info).error();
  if (!S_ISLNK(info->st_mode)) return TakeDirectory(name, mounts, root);
  root.links.push_back({name, TRY(sys::ReadLink(AT_FDCWD, "/" + name))});
  return Ok();
}

Status TakeEtcFile(int etc, std::string_view name, HostRoot& root) {
  std::string path(name);
  std::string inside = Text("etc/", name);
  Result<struct stat> info = sys::StatAt(etc, path);
  if (IsAbsent(info)) return Ok();
  if (!info.ok()) return std::move(info).error();
  if (S_ISLNK(info->st_mode)) {
    // The link is made again, not followed: inside it can lead only to what the cell has anyway.
    root.links.push_back({inside, TRY(sys::ReadLink(etc, path))});
    return Ok();
  }
  if (!S_ISREG(info->st_mode) || (info->st_mode & S_IROTH) == 0) return Ok();
  constexpr int kFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
  root.files.push_back({inside, "", TRY(sys::OpenAt2(etc, path, kFlags, sys::kResolveBeneath))});
  return Ok();
}

Status TakeEtcDirectory(int etc, std::string_view name, const MountTable& mounts, HostRoot& root) {
  Result<struct stat> info = sys::StatAt(etc, std::string(name));
  if (IsAbsent(info)) return Ok();
  if (!info.ok()) return std::move(info).error();
  constexpr mode_t kOpenToAll = S_IROTH | S_IXOTH;
  if (!S_ISDIR(info->st_mode) || (info->st_mode & kOpenToAll) != kOpenToAll) return Ok();
  return TakeDirectory(Text("etc/", name), mounts, root);
}

void Generate(const cell::CellPlan& plan, HostRoot& root) {
  root.files.push_back(
      {"etc/passwd", Text("cell:x:", plan.uid, ":", plan.gid, ":taskcell:/tmp/home:/bin/sh\n",
                          "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n")});
  root.files.push_back({"etc/group", Text("cell:x:", plan.gid, ":\nnogroup:x:65534:\n")});
  root.files.push_back({"etc/hosts", Text("127.0.0.1 localhost ", plan.hostname,
                                          "\n::1 localhost ip6-localhost\n")});
  root.files.push_back({"etc/hostname", plan.hostname + "\n"});
  root.files.push_back({"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"});
  root.files.push_back({"etc/resolv.conf", ""});
}

}  // namespace

Result<HostRoot> TakeHostRoot(const cell::CellPlan& plan, const MountTable& mounts) {
  HostRoot root;
  TRY(TakeDirectory("usr", mounts, root));
  for (std::string_view name : kTopLevel) TRY(TakeTopLevel(std::string(name), mounts, root));
  UniqueFd etc = TRY(sys::OpenAt2(AT_FDCWD, "/etc", O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS));
  for (std::string_view name : kHostEtcFiles) TRY(TakeEtcFile(etc.get(), name, root));
  for (std::string_view name : kHostEtcDirectories)
    TRY(TakeEtcDirectory(etc.get(), name, mounts, root));
  // /var/tmp is where some programs put what /tmp is too short-lived for; here both are one.
  root.links.push_back({"var/tmp", "../tmp"});
  Generate(plan, root);
  return root;
}

}  // namespace taskcell::native

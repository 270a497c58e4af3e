#include "launcher/native/cell_root.h"

#include <fcntl.h>
#include <sys/mount.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "launcher/base/text.h"
#include "launcher/sys/copy.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount.h"

namespace taskcell::native {
namespace {

// "/" of the cell when it is made from the host: a few directories, links and files of /etc.
constexpr char kRootTmpfsSize[] = "4m";
constexpr uint64_t kResolveInRoot = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

Result<UniqueFd> MakeTmpfs(const char* size, const char* mode, uint64_t attributes) {
  return sys::MakeFileSystem("tmpfs", {{"size", size}, {"mode", mode}}, attributes);
}

// Mounts `tree` over "/", where pivot_root takes it from.
Status AttachOverOldRoot(int tree) {
  UniqueFd old_root = TRY(sys::Open("/", O_PATH | O_DIRECTORY));
  return sys::AttachMount(tree, old_root.get());
}

Error ExplainTarget(Error error, const std::string& target, bool may_create) {
  if (error.err == ELOOP) {
    return Error(Kind::kViolation,
                 Text("'", Printable(target),
                      "' of the root is, or leads through, a symbolic link; a mount there would "
                      "land elsewhere. ",
                      may_create ? "Choose a place that is none"
                                 : "Make it a plain directory or file in the root"),
                 ELOOP);
  }
  if (error.err == ENOENT && !may_create) {
    return Error(Kind::kConfig,
                 Text("the root directory has no '", Printable(target),
                      "', and the launcher makes nothing in a root that is not its own. Make it "
                      "there: mkdir -p ROOTFS",
                      Printable(target), " (for a file: an empty file)"),
                 ENOENT);
  }
  if (error.err == EROFS) {
    return Error(Kind::kConfig,
                 Text("target '", Printable(target),
                      "' does not exist, and what of the host is shown there is read-only: choose "
                      "a place outside of it"),
                 EROFS);
  }
  return std::move(error).With(Text("target '", Printable(target), "'"));
}

}  // namespace

Result<UniqueFd> MakeParents(int dir_fd, std::string_view path) {
  UniqueFd at = TRY(sys::Duplicate(dir_fd));
  std::vector<std::string_view> parts = Split(path, '/');
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (parts[i].empty()) continue;
    std::string name(parts[i]);
    constexpr int kFlags = O_PATH | O_DIRECTORY;
    Result<UniqueFd> next = sys::OpenAt2(at.get(), name, kFlags, sys::kResolveBeneath);
    if (!next.ok() && next.error().err == ENOENT) {
      TRY(sys::MakeDirectory(at.get(), name, 0755));
      next = sys::OpenAt2(at.get(), name, kFlags, sys::kResolveBeneath);
    }
    at = TRY(std::move(next));
  }
  return at;
}

Result<int> EntryMaker::Parent(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == path.npos || slash == 0) return dir_fd_;
  std::string parent = path.substr(0, slash);
  if (parent_.valid() && parent == parent_path_) return parent_.get();
  parent_ = TRY(MakeParents(dir_fd_, path));
  parent_path_ = std::move(parent);
  return parent_.get();
}

Status EntryMaker::File(const RootEntry& file) {
  int parent = TRY(Parent(file.path));
  std::string name(Split(file.path, '/').back());
  UniqueFd fd = TRY(sys::OpenAt2(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                 sys::kResolveBeneath, 0444));
  if (file.source.valid())
    return sys::CopyContent(fd.get(), file.source.get(), kMaxHostEtcFileBytes);
  return sys::WriteAll(fd.get(), file.content);
}

Status EntryMaker::Directory(const std::string& path) {
  int parent = TRY(Parent(path));
  return sys::MakeDirectory(parent, std::string(Split(path, '/').back()), 0755);
}

Status EntryMaker::Link(const RootEntry& link) {
  int parent = TRY(Parent(link.path));
  return sys::MakeSymbolicLink(link.content, parent, std::string(Split(link.path, '/').back()));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): taken over, its descriptors close here
Result<CellRoot> CellRoot::FromHost(HostRoot host) {
  UniqueFd tmpfs = TRY(MakeTmpfs(kRootTmpfsSize, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
  TRY(AttachOverOldRoot(tmpfs.get()));
  CellRoot root(std::move(tmpfs), true);
  EntryMaker maker(root.fd());
  for (const RootEntry& file : host.files) TRY(maker.File(file).With(Text("'/", file.path, "'")));
  for (const RootEntry& link : host.links) TRY(maker.Link(link).With(Text("'/", link.path, "'")));
  TRY(sys::MakeDirectory(root.fd(), "run", 0755));
  for (const MountSource& source : host.mounts) {
    TRY(root.Attach(source.target, source.kind, source.tree.get()));
    root.own_mounts_.push_back(source.target);
  }
  return root;
}

Result<CellRoot> CellRoot::FromDirectory(MountSource directory) {
  TRY(AttachOverOldRoot(directory.tree.get()));
  return CellRoot(std::move(directory.tree), false);
}

// In a directory of the host that the cell may write to, what is made to mount on would stay.
Status CellRoot::CheckMayMake(const std::string& target) const {
  const Attached* innermost = nullptr;
  for (const Attached& each : attached_) {
    if (!cell::IsAtOrBelow(target, each.target)) continue;
    if (innermost == nullptr || each.target.size() > innermost->target.size()) innermost = &each;
  }
  if (innermost == nullptr || innermost->writable_source.empty()) return Ok();
  return Error(
      Kind::kConfig,
      Text("target '", Printable(target), "' does not exist in what --bind-rw shows at '",
           Printable(innermost->target),
           "', and the launcher makes nothing in a directory of the host. Make it there: mkdir -p ",
           Printable(innermost->writable_source),
           Printable(std::string_view(target).substr(innermost->target.size())),
           " (for a file: an empty file)"),
      ENOENT);
}

Status CellRoot::Make(const std::string& path, cell::EntryKind kind) {
  EntryMaker maker(fd());
  return kind == cell::EntryKind::kDirectory ? maker.Directory(path) : maker.File({path, ""});
}

Result<UniqueFd> CellRoot::OpenTarget(const std::string& target, cell::EntryKind kind) {
  Result<UniqueFd> opened = sys::OpenAt2(fd(), target, O_PATH, kResolveInRoot);
  if (!opened.ok() && opened.error().err == ENOENT && may_create_) {
    TRY(CheckMayMake(target));
    Status made = Make(target, kind);
    if (!made.ok()) return ExplainTarget(std::move(made).error(), target, true);
    opened = sys::OpenAt2(fd(), target, O_PATH, kResolveInRoot);
  }
  if (!opened.ok()) return ExplainTarget(std::move(opened).error(), target, may_create_);
  struct stat info = TRY(sys::Stat(opened->get()));
  if (S_ISDIR(info.st_mode) == (kind == cell::EntryKind::kDirectory)) return opened;
  return Error(Kind::kConfig,
               Text("target '", Printable(target), "' of the root is ",
                    S_ISDIR(info.st_mode) ? "a directory, a file is mounted there"
                                          : "not a directory, a directory is mounted there"));
}

Status CellRoot::Attach(const std::string& target, cell::EntryKind kind, int tree,
                        const std::string& writable_source) {
  for (const std::string& own : own_mounts_) {
    if (!cell::IsAtOrBelow(own, target)) continue;
    return Error(Kind::kConfig,
                 Text("target '", Printable(target), "' would cover the host root's own mount at '",
                      own, "': choose another place for it"),
                 EEXIST);
  }
  UniqueFd place = TRY(OpenTarget(target, kind));
  TRY(sys::AttachMount(tree, place.get()).With(Text("'", Printable(target), "'")));
  attached_.push_back({target, writable_source});
  return Ok();
}

Status CellRoot::AttachTmpfs(const cell::PlannedTmpfs& tmpfs) {
  std::string size = std::to_string(tmpfs.size_bytes);
  std::array<char, 16> mode;
  std::snprintf(mode.data(), mode.size(), "%o", tmpfs.mode & 07777U);
  uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (!tmpfs.exec) attributes |= MOUNT_ATTR_NOEXEC;
  if (tmpfs.read_only) attributes |= MOUNT_ATTR_RDONLY;
  UniqueFd mount = TRY(MakeTmpfs(size.c_str(), mode.data(), attributes));
  return Attach(tmpfs.target, cell::EntryKind::kDirectory, mount.get());
}

Status CellRoot::Seal() {
  if (!may_create_) return Ok();
  return sys::SetMountAttributes(fd(), MOUNT_ATTR_RDONLY, 0, false);
}

}  // namespace taskcell::native

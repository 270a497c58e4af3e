#include "launcher/native/source_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/entry.h"
#include "launcher/native/mount_table.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::native {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY;

bool IsChannel(mode_t mode) { return S_ISSOCK(mode) || S_ISFIFO(mode); }
bool IsDevice(mode_t mode) { return S_ISCHR(mode) || S_ISBLK(mode); }
mode_t ModeOfType(unsigned char type) { return DTTOIF(static_cast<mode_t>(type)); }

Error Special(const std::string& path, mode_t mode) {
  return Error(Kind::kViolation,
               Text("'", Printable(path), "' is ", mounts::KindName(mode),
                    ": what is mounted into a cell holds plain files, directories and links only. "
                    "Mount something without it"));
}

// Whether a process with the cell's ids, without groups and capabilities, gets into a directory.
Result<bool> CellMayEnter(int dir_fd, const std::string& name, const OutsideIds& cell) {
  // The caller's ids without its groups.
  if (cell.way == MapWay::kOwn) return sys::CheckAccess(dir_fd, name, X_OK).ok();
  UniqueFd fd = TRY(sys::OpenAt2(dir_fd, name, O_PATH | O_DIRECTORY, sys::kResolveBeneath));
  struct stat info = TRY(sys::Stat(fd.get()));
  if (info.st_uid == cell.uid) return (info.st_mode & S_IXUSR) != 0;
  if (TRY(sys::HasAccessList(fd.get()))) return true;  // it may name the cell's ids
  return (info.st_mode & (info.st_gid == cell.gid ? S_IXGRP : S_IXOTH)) != 0;
}

// A walk over everything below a source, or, with the cell's ids, below its root directory.
class Walk {
 public:
  Walk(const std::string& top, const WalkBounds& bounds, const OutsideIds* root_of)
      : top_(top), bounds_(bounds), root_of_(root_of), left_(bounds.entries) {}

  Status Start(int fd);

 private:
  Status Directory(int fd, const std::string& path, int depth);
  Status Entry(int dir_fd, const sys::DirectoryEntry& entry, const std::string& path, int depth);
  Status Judge(const std::string& path, mode_t mode) const;
  Status Unopened(int dir_fd, const std::string& name, const std::string& path, Error error) const;
  Error Unreadable(const std::string& path) const;
  Error Changed(const std::string& path, const Error& error) const;
  std::string_view Smaller() const;

  const std::string& top_;
  const WalkBounds& bounds_;
  const OutsideIds* root_of_;
  std::size_t left_;
};

Status Walk::Judge(const std::string& path, mode_t mode) const {
  if (root_of_ == nullptr) {
    if (IsChannel(mode) || IsDevice(mode)) return Special(path, mode);
  } else if (IsChannel(mode)) {
    return Error(Kind::kViolation,
                 Text("'", Printable(path), "' is ", mounts::KindName(mode),
                      ": its other end may be outside of the cell. Remove it; `find ",
                      Printable(top_), " -type s,p -delete` removes all of them"));
  }
  return Ok();
}

// One may be searchable without being readable: a known name in it would still open.
Error Walk::Unreadable(const std::string& path) const {
  return Error(Kind::kDenied,
               Text("'", Printable(path), "' cannot be looked through for sockets and the like: ",
                    root_of_ == nullptr
                        ? "permission denied. Mount a part of it that you can read"
                        : "permission denied, while the cell may enter it. Let it be read (chmod "
                          "o+r) or close it (chmod g-x,o-x)"),
               EACCES);
}

// A directory of the listing is gone, or a link or file by now: the kernel names these differently
// from release to release. Looking on would miss what was moved behind the walk.
Error Walk::Changed(const std::string& path, const Error& error) const {
  return Error(Kind::kViolation,
               Text("'", Printable(path), "' was changed while '", Printable(top_),
                    "' was looked through for sockets and the like: launch when nothing creates, "
                    "moves or removes directories in it"),
               error.err);
}

// What to do about a directory that could not be opened.
Status Walk::Unopened(int dir_fd, const std::string& name, const std::string& path,
                      Error error) const {
  if (root_of_ != nullptr && error.err == EXDEV) {
    return Error(Kind::kViolation,
                 Text("something is mounted at '", Printable(path),
                      "': a root directory is one mount. Unmount it there; what the cell needs of "
                      "it can go in with --ro"),
                 EXDEV);
  }
  if (error.err == ENOENT || error.err == ELOOP || error.err == ENOTDIR)
    return Changed(path, error);
  if (error.err != EACCES) return error;
  if (root_of_ != nullptr && !TRY(CellMayEnter(dir_fd, name, *root_of_))) return Ok();
  return Unreadable(path);
}

Status Walk::Entry(int dir_fd, const sys::DirectoryEntry& entry, const std::string& path,
                   int depth) {
  mode_t mode = ModeOfType(entry.type);
  if (entry.type == DT_UNKNOWN) {
    struct stat info = TRY(sys::StatAt(dir_fd, entry.name));
    mode = info.st_mode;
  }
  TRY(Judge(path, mode));
  if (!S_ISDIR(mode)) return Ok();
  uint64_t resolve = sys::kResolveBeneath | (root_of_ == nullptr ? 0 : RESOLVE_NO_XDEV);
  Result<UniqueFd> next = sys::OpenAt2(dir_fd, entry.name, kDirectory, resolve);
  if (!next.ok()) return Unopened(dir_fd, entry.name, path, std::move(next).error());
  return Directory(next->get(), path, depth + 1);
}

Status Walk::Directory(int fd, const std::string& path, int depth) {
  if (depth > bounds_.depth) {
    return Error(Kind::kViolation, Text("'", Printable(path), "' is more than ", bounds_.depth,
                                        " directories deep; ", Smaller()));
  }
  Result<std::vector<sys::DirectoryEntry>> entries = sys::ReadDirectory(fd, left_);
  if (!entries.ok() && entries.error().err == EFBIG) {
    return Error(Kind::kViolation, Text("'", Printable(top_), "' holds more than ", bounds_.entries,
                                        " entries, too many to look at; ", Smaller()));
  }
  if (!entries.ok()) return std::move(entries).error();
  left_ -= entries->size();
  for (const sys::DirectoryEntry& entry : entries.value())
    TRY(Entry(fd, entry, path + "/" + entry.name, depth));
  return Ok();
}

std::string_view Walk::Smaller() const {
  return root_of_ == nullptr ? "mount a smaller part"
                             : "take what programs do not need out of the root directory, or "
                               "show it with --ro";
}

Status Walk::Start(int fd) {
  Result<UniqueFd> readable = sys::OpenAt2(fd, ".", kDirectory, sys::kResolveBeneath);
  if (readable.ok()) return Directory(readable->get(), top_, 1);
  if (readable.error().err == EACCES) return Unreadable(top_);
  return std::move(readable).error();
}

bool IsBelowUsr(const std::string& path) { return path == "/usr" || path.starts_with("/usr/"); }

}  // namespace

Status CheckSource(int fd, const std::string& path, const WalkBounds& bounds) {
  MountTable mounts = TRY(MountTable::Read());
  TRY(mounts.CheckShown(fd, path));
  struct stat info = TRY(sys::Stat(fd));
  if (S_ISREG(info.st_mode) || (S_ISDIR(info.st_mode) && IsBelowUsr(path))) return Ok();
  if (!S_ISDIR(info.st_mode)) return Special(path, info.st_mode);
  return Walk(path, bounds, nullptr).Start(fd);
}

Status CheckRootDirectory(int fd, const std::string& path, const OutsideIds& outside,
                          const WalkBounds& bounds) {
  MountTable mounts = TRY(MountTable::Read());
  TRY(mounts.CheckShown(fd, path));
  return Walk(path, bounds, &outside).Start(fd);
}

}  // namespace taskcell::native

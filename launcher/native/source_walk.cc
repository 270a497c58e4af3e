#include "launcher/native/source_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"

namespace taskcell::native {
namespace {

const char* SpecialKind(mode_t mode) {
  if (S_ISSOCK(mode)) return "socket";
  if (S_ISFIFO(mode)) return "FIFO";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "device";
  return nullptr;
}

Error Special(const std::string& path, const char* kind) {
  return Error(Kind::kViolation,
               Text("'", Printable(path), "' is a ", kind,
                    ": what is mounted into a cell holds plain files, directories and links only"));
}

// One may be searchable without being readable: a known name in it would still open.
Error Unreadable(Error error, const std::string& path) {
  if (error.err != EACCES) return error;
  return Error(Kind::kDenied,
               Text("'", Printable(path),
                    "' cannot be looked through for sockets, FIFOs and devices: permission "
                    "denied. Mount a part of it that you can read"),
               EACCES);
}

mode_t ModeOfType(unsigned char type) { return DTTOIF(static_cast<mode_t>(type)); }

class Walk {
 public:
  Status Directory(int fd, const std::string& path, int depth);

 private:
  Status Entry(int dir_fd, const sys::DirectoryEntry& entry, const std::string& path, int depth);

  std::size_t left_ = kMaxWalkEntries;
};

Status Walk::Entry(int dir_fd, const sys::DirectoryEntry& entry, const std::string& path,
                   int depth) {
  mode_t mode = ModeOfType(entry.type);
  if (entry.type == DT_UNKNOWN) {
    struct stat info = TRY(sys::StatAt(dir_fd, entry.name));
    mode = info.st_mode;
  }
  if (const char* kind = SpecialKind(mode)) return Special(path, kind);
  if (!S_ISDIR(mode)) return Ok();
  Result<UniqueFd> next =
      sys::OpenAt2(dir_fd, entry.name, O_RDONLY | O_DIRECTORY, sys::kResolveBeneath);
  if (!next.ok()) return Unreadable(std::move(next).error(), path);
  return Directory(next->get(), path, depth + 1);
}

Status Walk::Directory(int fd, const std::string& path, int depth) {
  if (depth > kMaxWalkDepth) {
    return Error(Kind::kViolation, Text("'", Printable(path), "' is more than ", kMaxWalkDepth,
                                        " directories deep; mount a smaller part"));
  }
  Result<std::vector<sys::DirectoryEntry>> entries = sys::ListDirectory(fd, left_);
  if (!entries.ok() && entries.error().err == EFBIG) {
    return Error(Kind::kViolation,
                 Text("more than ", kMaxWalkEntries, " entries to look at; mount a smaller part"));
  }
  if (!entries.ok()) return std::move(entries).error();
  left_ -= entries->size();
  for (const sys::DirectoryEntry& entry : entries.value())
    TRY(Entry(fd, entry, path + "/" + entry.name, depth));
  return Ok();
}

bool IsBelowUsr(const std::string& path) { return path == "/usr" || path.starts_with("/usr/"); }

}  // namespace

Status CheckSource(int fd, const std::string& path) {
  // A cell that gets at its cgroup files could lift its limits; one that gets at /proc, the
  // launcher's descriptors.
  uint64_t type = TRY(sys::FileSystemOf(fd)).type;
  if (type == PROC_SUPER_MAGIC || type == CGROUP_SUPER_MAGIC || type == CGROUP2_SUPER_MAGIC) {
    return Error(Kind::kViolation, Text("'", Printable(path),
                                        "' is on a proc or cgroup file system: those are never "
                                        "shown to a cell"));
  }
  struct stat info = TRY(sys::Stat(fd));
  if (const char* kind = SpecialKind(info.st_mode)) return Special(path, kind);
  if (S_ISREG(info.st_mode) || IsBelowUsr(path)) return Ok();
  if (!S_ISDIR(info.st_mode)) return Special(path, "link");
  Result<UniqueFd> readable = sys::OpenAt2(fd, ".", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath);
  if (!readable.ok()) return Unreadable(std::move(readable).error(), path);
  return Walk().Directory(readable->get(), path, 1);
}

}  // namespace taskcell::native

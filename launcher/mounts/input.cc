#include "launcher/mounts/input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/mounts/component.h"
#include "launcher/mounts/entry.h"
#include "launcher/mounts/file_copier.h"
#include "launcher/sys/copy.h"
#include "launcher/sys/file.h"
#include "launcher/sys/read_lease.h"

namespace taskcell::mounts {
namespace {

Error Refused(std::string_view path, std::string_view why) {
  return Error(Kind::kViolation, Text("the input '", Printable(path), "' ", why))
      .Coded("invalid_input");
}

class InputCopier {
 public:
  explicit InputCopier(const SnapshotBounds& bounds) : bounds_(bounds) {}

  Status Copy(int to_dir, int from_dir, const std::string& name, const std::string& path,
              int depth) {
    if (++entries_ > bounds_.entries)
      return Refused(path, Text("is one of more than ", bounds_.entries, " entries"));
    cell::EntryKind kind = cell::EntryKind::kFile;
    Finding finding = TRY(JudgeAny(from_dir, name, kind));
    if (finding.verdict == Verdict::kAbsent) return Refused(path, "does not exist");
    if (finding.verdict != Verdict::kSafe)
      return Refused(path, Text("cannot be mounted (", Name(finding.reason), "): ", finding.note));
    return kind == cell::EntryKind::kFile ? CopyFile(to_dir, name, path, finding.fd.get())
                                          : CopyDirectory(to_dir, name, path, finding, depth);
  }

 private:
  Status CopyFile(int to_dir, const std::string& name, const std::string& path, int from) {
    for (int tries = 0; tries < kCopyTries; ++tries) {
      const sys::ReadLease lease(from);
      const struct stat before = TRY(sys::Stat(from));
      const auto size = static_cast<uint64_t>(before.st_size);
      if (size > bounds_.bytes - bytes_)
        return Refused(path, Text("is one of more than ", bounds_.bytes, " bytes"));
      if (tries > 0) TRY(sys::Rewind(from));
      if (!TRY(copies_.CopyOnce(to_dir, name, from, before, nullptr))) continue;
      if (lease.IsBroken()) {
        TRY(sys::RemoveFile(to_dir, name));
        continue;
      }
      bytes_ += size;
      return Ok();
    }
    return Refused(path, "kept changing while it was copied");
  }

  Status CopyDirectory(int to_dir, const std::string& name, const std::string& path,
                       const Finding& finding, int depth) {
    if (depth > bounds_.depth)
      return Refused(path, Text("is more than ", bounds_.depth, " levels deep"));
    TRY(sys::MakeDirectory(to_dir, name, 0700));
    UniqueFd to = TRY(OpenComponent(to_dir, name, O_RDONLY | O_DIRECTORY));
    for (const sys::DirectoryEntry& entry :
         TRY(sys::ListDirectory(finding.fd.get(), bounds_.entries)))
      TRY(Copy(to.get(), finding.fd.get(), entry.name, Text(path, "/", entry.name), depth + 1));
    return sys::ChangeMode(to.get(), 0555);
  }

  const SnapshotBounds& bounds_;
  FileCopier copies_;
  std::size_t entries_ = 0;
  uint64_t bytes_ = 0;
};

// What a path leads to: a name in a directory that nobody else can exchange.
struct Place {
  UniqueFd directory;
  std::string name;
};

Result<Place> FindPlace(std::string path) {
  const std::string asked = path;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  const std::size_t slash = path.rfind('/');
  Place place;
  place.name = slash == path.npos ? path : path.substr(slash + 1);
  if (place.name.empty() || place.name == "." || place.name == "..")
    return Refused(asked, "has no last name of its own; name the file or directory itself");
  std::string parent = slash == path.npos ? "." : path.substr(0, slash + 1);
  Result<PinnedPath> pinned = PinTrustedPath(parent, TrustIn(::geteuid()));
  if (!pinned.ok()) return Refused(asked, Text("cannot be used: ", pinned.error().text));
  // Of the last directory a look at its entry tells who else may exchange it.
  const Result<PinnedPath> itself = PinTrustedPath(path, TrustIn(::geteuid()));
  if (!itself.ok() && itself.error().err != ENOENT)
    return Refused(asked, Text("cannot be used: ", itself.error().text));
  place.directory =
      TRY(sys::OpenAt2(pinned->fd.get(), ".", O_RDONLY | O_DIRECTORY, sys::kResolveBeneath));
  return place;
}

}  // namespace

Status CopyInputs(const std::vector<std::string>& paths, int target_dir_fd,
                  const SnapshotBounds& bounds) {
  if (paths.size() > kMaxInputPaths)
    return Error(Kind::kUsage, Text("more than ", kMaxInputPaths, " inputs"))
        .Coded("invalid_input");
  InputCopier copier(bounds);
  for (const std::string& path : paths) {
    const Place place = TRY(FindPlace(path));
    const Result<struct stat> there = sys::StatAt(target_dir_fd, place.name);
    if (there.ok()) return Refused(path, "has the same last name as another");
    TRY(copier.Copy(target_dir_fd, place.directory.get(), place.name, path, 1));
  }
  return sys::ChangeMode(target_dir_fd, 0555);
}

}  // namespace taskcell::mounts

#include "launcher/native/data_files.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/native/private_tmpfs.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"
#include "launcher/sys/signals.h"

namespace taskcell::native {
namespace {

// Of the tmpfs that holds one file, whose size is in whole pages.
constexpr uint64_t kSpareBytes = 131072;
constexpr uint64_t kInodes = 16;
constexpr char kContentName[] = "content";

// Makes `name` below `directory`, readable by every id a cell may have.
Result<UniqueFd> WriteFile(int directory, const std::string& name, std::string_view content) {
  UniqueFd fd = TRY(sys::OpenAt2(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                 sys::kResolveBeneath, 0400));
  TRY(sys::WriteAll(fd.get(), content));
  TRY(sys::ChangeMode(fd.get(), 0444));
  return fd;
}

}  // namespace

Result<std::vector<DataFile>> DataFiles::Read(const std::vector<FileOption>& files,
                                              int timeout_ms) {
  constexpr uint64_t kUsPerMs = 1000;
  const uint64_t end_us = sys::MonotonicUs() + static_cast<uint64_t>(timeout_ms) * kUsPerMs;
  std::vector<DataFile> read;
  for (const FileOption& file : files) {
    UniqueFd source(file.fd);
    uint64_t now_us = sys::MonotonicUs();
    int left_ms = now_us < end_us ? static_cast<int>((end_us - now_us) / kUsPerMs) : 0;
    Result<std::string> content = sys::ReadAllWithin(source.get(), kMaxDataFileBytes, left_ms);
    if (!content.ok()) {
      Error error = std::move(content).error();
      if (error.err == ETIMEDOUT)
        error = Error(Kind::kUsage,
                      Text("descriptor ", file.fd, " was not at its end within ", timeout_ms,
                           " ms: let its writer close it, or allow more with --timeout"),
                      ETIMEDOUT);
      return std::move(error).With(Text("--file '", Printable(file.target), "'"));
    }
    read.push_back({file.target, file.fd, std::move(content).value()});
  }
  return read;
}

Result<DataFiles> DataFiles::Make(std::vector<DataFile> files, const std::string& run_id) {
  DataFiles made;
  for (DataFile& each : files) {
    const DataFile file = std::move(each);  // not kept twice
    Result<UniqueFd> tree = MakePrivateTmpfs(file.content.size() + kSpareBytes, kInodes);
    Status added =
        tree.ok() ? made.AddDetached(file, std::move(tree).value()) : made.AddNamed(file, run_id);
    if (!added.ok())
      return std::move(added).error().With(Text("--file '", Printable(file.target), "'"));
  }
  return made;
}

Status DataFiles::AddDetached(const DataFile& file, UniqueFd tree) {
  UniqueFd root = TRY(sys::OpenNoFollow(tree.get(), ".", O_RDONLY | O_DIRECTORY));
  UniqueFd fd = TRY(WriteFile(root.get(), kContentName, file.content));
  copies_.push_back({file.target, Text("/proc/self/fd/", file.fd), std::move(tree), std::move(fd)});
  return Ok();
}

Status DataFiles::AddNamed(const DataFile& file, const std::string& run_id) {
  if (!directory_) directory_.emplace(TRY(mounts::ScratchDirectory::Make("file", run_id)));
  const std::string name = std::to_string(copies_.size());
  UniqueFd fd = TRY(WriteFile(directory_->fd(), name, file.content));
  copies_.push_back({file.target, Text(directory_->path(), "/", name), UniqueFd(), std::move(fd)});
  return Ok();
}

Status DataFiles::AddTo(LaunchRequest& request) {
  for (Copy& copy : copies_) {
    struct stat info = TRY(sys::Stat(copy.fd.get()));
    cell::PlannedMount mount;
    mount.source = copy.source;
    mount.target = copy.target;
    mount.kind = cell::EntryKind::kFile;
    mount.device = info.st_dev;
    mount.inode = info.st_ino;
    request.plan.mounts.push_back(std::move(mount));
    if (copy.tree.valid())
      request.detached.push_back({copy.target, std::move(copy.tree), kContentName});
  }
  return Ok();
}

}  // namespace taskcell::native

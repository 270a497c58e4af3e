#include "launcher/native/data_files.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/signals.h"

namespace taskcell::native {

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
    read.push_back({file.target, std::move(content).value()});
  }
  return read;
}

Result<DataFiles> DataFiles::Make(std::vector<DataFile> files, const std::string& run_id) {
  DataFiles made;
  if (files.empty()) return made;
  made.directory_.emplace(TRY(mounts::ScratchDirectory::Make("file", run_id)));
  for (DataFile& file : files) {
    Status added = made.Add(file);
    if (!added.ok())
      return std::move(added).error().With(Text("--file '", Printable(file.target), "'"));
  }
  return made;
}

Status DataFiles::Add(const DataFile& file) {
  Copy copy{file.target, std::to_string(copies_.size()), UniqueFd()};
  copy.fd = TRY(sys::OpenAt2(directory_->fd(), copy.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                             sys::kResolveBeneath, 0400));
  TRY(sys::WriteAll(copy.fd.get(), file.content));
  TRY(sys::ChangeMode(copy.fd.get(), 0444));
  copies_.push_back(std::move(copy));
  return Ok();
}

Status DataFiles::AddTo(LaunchRequest& request) const {
  for (const Copy& copy : copies_) {
    struct stat info = TRY(sys::Stat(copy.fd.get()));
    cell::PlannedMount mount;
    mount.source = Text(directory_->path(), "/", copy.name);
    mount.target = copy.target;
    mount.kind = cell::EntryKind::kFile;
    mount.device = info.st_dev;
    mount.inode = info.st_ino;
    request.plan.mounts.push_back(std::move(mount));
  }
  return Ok();
}

}  // namespace taskcell::native

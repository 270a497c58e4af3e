#include "launcher/native/data_files.h"

#include <fcntl.h>

#include <utility>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"

namespace taskcell::native {

Result<DataFiles> DataFiles::Make(const std::vector<FileOption>& files, const std::string& run_id) {
  DataFiles made;
  if (files.empty()) return made;
  made.directory_.emplace(TRY(mounts::ScratchDirectory::Make("file", run_id)));
  for (const FileOption& file : files)
    TRY(made.Add(file).With(Text("--file '", Printable(file.target), "'")));
  return made;
}

Status DataFiles::Add(const FileOption& file) {
  UniqueFd source(file.fd);
  std::string content = TRY(sys::ReadAll(source.get(), kMaxDataFileBytes));
  Copy copy{file.target, std::to_string(copies_.size()), UniqueFd()};
  copy.fd = TRY(sys::OpenAt2(directory_->fd(), copy.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                             sys::kResolveBeneath, 0400));
  TRY(sys::WriteAll(copy.fd.get(), content));
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

#include "launcher/native/agent_snapshot.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/mounts/bounded_snapshot.h"
#include "launcher/mounts/snapshot.h"
#include "launcher/native/private_tmpfs.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"

namespace taskcell::native {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY;
constexpr char kCopyName[] = "copy";
constexpr std::size_t kMostEntries = 64;  // far more than there are
constexpr uint64_t kTmpfsInodes = mounts::kMaxSnapshotEntries + 16;

// A file takes whole pages.
uint64_t TmpfsBytes() {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return mounts::kMaxSnapshotBytes + mounts::kMaxSnapshotEntries * page;
}

}  // namespace

Status AgentSnapshot::MakePlace(const std::string& run_id) {
  Result<UniqueFd> mount = MakePrivateTmpfs(TmpfsBytes(), kTmpfsInodes);
  if (mount.ok()) {
    mount_ = std::move(mount).value();
    root_ = TRY(sys::OpenNoFollow(mount_.get(), ".", kDirectory));
    return Ok();
  }
  if (mount.error().err != ENOSYS) return std::move(mount).error();
  // The directory itself lets nobody else in; what is in it the cell may read with any id.
  scratch_.emplace(TRY(mounts::ScratchDirectory::Make("agent", run_id)));
  TRY(sys::MakeDirectory(scratch_->fd(), kCopyName, 0700));
  root_ = TRY(sys::OpenNoFollow(scratch_->fd(), kCopyName, kDirectory));
  source_ = Text(scratch_->path(), "/", kCopyName);
  return Ok();
}

Result<mounts::PinnedPath> AgentSnapshot::Pin(const std::string& agent_directory) {
  return mounts::PinTrustedPath(agent_directory, mounts::TrustIn(::geteuid()))
      .With(Text("--agent-dir '", Printable(agent_directory), "'"));
}

Result<AgentSnapshot> AgentSnapshot::Make(mounts::PinnedPath agent, const std::string& run_id,
                                          int stop_fd) {
  std::string intent = Text("--agent-dir '", Printable(agent.path), "'");
  AgentSnapshot made;
  made.source_ = std::move(agent.path);
  TRY(made.MakePlace(run_id).With(intent));
  mounts::Snapshot snapshot = TRY(mounts::SnapshotInTime(agent.fd.get(), made.root_.get(),
                                                         {mounts::kSnapshotTimeLimit, stop_fd})
                                      .With(intent));
  made.warnings_ = std::move(snapshot.warnings);
  if (TRY(sys::ListDirectory(made.root_.get(), kMostEntries)).empty()) {
    made.warnings_.push_back(Text(intent,
                                  ": nothing of it is shown: it has no SOUL.md nor any other of "
                                  "the entries that are"));
  }
  return made;
}

Status AgentSnapshot::AddTo(LaunchRequest& request) {
  struct stat info = TRY(sys::Stat(root_.get()));
  cell::PlannedMount mount;
  mount.source = source_;
  mount.target = "/agent";
  mount.kind = cell::EntryKind::kDirectory;
  mount.device = info.st_dev;
  mount.inode = info.st_ino;
  request.plan.mounts.push_back(mount);
  if (mount_.valid()) request.detached.push_back({mount.target, std::move(mount_)});
  return Ok();
}

}  // namespace taskcell::native

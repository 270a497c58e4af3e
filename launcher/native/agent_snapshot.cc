#include "launcher/native/agent_snapshot.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/mounts/snapshot.h"
#include "launcher/mounts/tree.h"
#include "launcher/sys/file.h"

namespace taskcell::native {
namespace {

constexpr std::size_t kMaxBaseEntries = 100'000;
constexpr int kDirectory = O_RDONLY | O_DIRECTORY;
constexpr std::string_view kCopyName = "agent";

std::string BasePath() {
  const char* runtime = ::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe): one thread
  if (runtime != nullptr && runtime[0] == '/') {
    Result<UniqueFd> fd = sys::Open(runtime, O_PATH | O_DIRECTORY);
    if (fd.ok()) {
      Result<struct stat> info = sys::Stat(fd->get());
      if (info.ok() && info->st_uid == ::geteuid()) return runtime;
    }
  }
  return "/tmp";
}

std::string Prefix() { return Text("taskcell-agent-", ::geteuid(), "-"); }

// Removes what launchers of this user left that were killed. A lock that is taken means it lives.
void RemoveLeftovers(int base) {
  Result<std::vector<sys::DirectoryEntry>> entries = sys::ListDirectory(base, kMaxBaseEntries);
  if (!entries.ok()) return;  // ignoring: leftovers stay for another time
  for (const sys::DirectoryEntry& entry : entries.value()) {
    if (!entry.name.starts_with(Prefix())) continue;
    Result<UniqueFd> fd = sys::OpenAt2(base, entry.name, kDirectory, sys::kResolveBeneath);
    if (!fd.ok()) continue;
    Result<struct stat> info = sys::Stat(fd->get());
    if (!info.ok() || info->st_uid != ::geteuid()) continue;
    if (!sys::Lock(fd->get(), LOCK_EX | LOCK_NB).ok()) continue;
    (void)mounts::RemoveTree(base, entry.name);  // ignoring: leftovers stay for another time
  }
}

}  // namespace

AgentSnapshot::~AgentSnapshot() {
  if (!lock_.valid()) return;
  (void)mounts::RemoveTree(base_.get(), name_);  // ignoring: the next launch takes it
}

Result<AgentSnapshot> AgentSnapshot::Make(const std::string& agent_directory,
                                          const std::string& run_id) {
  std::string intent = Text("--agent-dir '", Printable(agent_directory), "'");
  UniqueFd agent = TRY(sys::Open(agent_directory, kDirectory).With(intent));
  AgentSnapshot made;
  std::string base = BasePath();
  made.base_ = TRY(sys::Open(base, kDirectory));
  RemoveLeftovers(made.base_.get());
  made.name_ = Prefix() + run_id;
  made.path_ = Text(base, "/", made.name_, "/", kCopyName);
  TRY(sys::MakeDirectory(made.base_.get(), made.name_, 0700));
  made.lock_ = TRY(sys::OpenAt2(made.base_.get(), made.name_, kDirectory, sys::kResolveBeneath));
  TRY(sys::Lock(made.lock_.get(), LOCK_EX | LOCK_NB));
  TRY(sys::MakeDirectory(made.lock_.get(), std::string(kCopyName), 0700));
  made.copy_ =
      TRY(sys::OpenAt2(made.lock_.get(), std::string(kCopyName), kDirectory, sys::kResolveBeneath));
  mounts::Snapshot snapshot =
      TRY(mounts::SnapshotAgentDirectory(agent.get(), made.copy_.get()).With(intent));
  made.warnings_ = std::move(snapshot.warnings);
  return made;
}

Status AgentSnapshot::AddTo(LaunchRequest& request) const {
  struct stat info = TRY(sys::Stat(copy_.get()));
  cell::PlannedMount mount;
  mount.source = path_;
  mount.target = "/agent";
  mount.kind = cell::EntryKind::kDirectory;
  mount.device = info.st_dev;
  mount.inode = info.st_ino;
  request.plan.mounts.push_back(std::move(mount));
  return Ok();
}

}  // namespace taskcell::native

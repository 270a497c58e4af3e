#include "launcher/native/agent_snapshot.h"

#include <fcntl.h>
#include <unistd.h>

#include "launcher/base/text.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/mounts/snapshot.h"
#include "launcher/sys/entry.h"
#include "launcher/sys/file.h"

namespace taskcell::native {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY;
constexpr std::string_view kCopyName = "agent";

}  // namespace

Result<AgentSnapshot> AgentSnapshot::Make(const std::string& agent_directory,
                                          const std::string& run_id) {
  std::string intent = Text("--agent-dir '", Printable(agent_directory), "'");
  mounts::PinnedPath pinned =
      TRY(mounts::PinTrustedPath(agent_directory, mounts::TrustIn(::geteuid())).With(intent));
  UniqueFd agent = TRY(sys::OpenNoFollow(pinned.fd.get(), ".", kDirectory).With(intent));
  AgentSnapshot made(TRY(mounts::ScratchDirectory::Make("agent", run_id)));
  TRY(sys::MakeDirectory(made.directory_.fd(), std::string(kCopyName), 0700));
  made.copy_ = TRY(
      sys::OpenAt2(made.directory_.fd(), std::string(kCopyName), kDirectory, sys::kResolveBeneath));
  mounts::Snapshot snapshot =
      TRY(mounts::SnapshotAgentDirectory(agent.get(), made.copy_.get()).With(intent));
  made.warnings_ = std::move(snapshot.warnings);
  return made;
}

Status AgentSnapshot::AddTo(LaunchRequest& request) const {
  struct stat info = TRY(sys::Stat(copy_.get()));
  cell::PlannedMount mount;
  mount.source = Text(directory_.path(), "/", kCopyName);
  mount.target = "/agent";
  mount.kind = cell::EntryKind::kDirectory;
  mount.device = info.st_dev;
  mount.inode = info.st_ino;
  request.plan.mounts.push_back(std::move(mount));
  return Ok();
}

}  // namespace taskcell::native

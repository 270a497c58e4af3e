#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/ancestors.h"
#include "launcher/mounts/scratch_directory.h"
#include "launcher/native/request.h"

namespace taskcell::native {

// A private copy of an agent directory's allowed entries, which a cell sees at /agent: in a tmpfs
// that is attached in the cell's mount namespace and nowhere else, so that no other process of this
// user, and no run that was killed, ever has it on a disk. Where the mount calls for that are
// missing it is in a private scratch directory for as long as this object lives.
class AgentSnapshot {
 public:
  // What the caller names, by a way that nobody else can exchange. Waits where a file system on the
  // way does not answer.
  static Result<mounts::PinnedPath> Pin(const std::string& agent_directory);
  // Copies in a time limit (mounts::SnapshotInTime); `stop_fd` as there.
  static Result<AgentSnapshot> Make(mounts::PinnedPath agent, const std::string& run_id,
                                    int stop_fd);

  AgentSnapshot(AgentSnapshot&&) noexcept = default;
  AgentSnapshot& operator=(AgentSnapshot&&) = delete;

  // What was left out, one printable line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Plans the mount at /agent and hands it over. This object must outlive the cell: it pins the
  // inode that the attestation looks for.
  Status AddTo(LaunchRequest& request);

 private:
  AgentSnapshot() = default;
  Status MakePlace(const std::string& run_id);

  std::string source_;  // the agent directory, or the scratch one's copy
  UniqueFd mount_;      // detached
  std::optional<mounts::ScratchDirectory> scratch_;  // else
  UniqueFd root_;                                    // of either
  std::vector<std::string> warnings_;
};

}  // namespace taskcell::native

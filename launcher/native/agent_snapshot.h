#pragma once

#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/native/request.h"

namespace taskcell::native {

// A private copy of an agent directory's allowed entries, which a cell sees at /agent: in a tmpfs
// that is attached in the cell's mount namespace and nowhere else, so that no other process of this
// user, and no run that was killed, ever has it on a disk.
class AgentSnapshot {
 public:
  static Result<AgentSnapshot> Make(const std::string& agent_directory);

  AgentSnapshot(AgentSnapshot&&) noexcept = default;
  AgentSnapshot& operator=(AgentSnapshot&&) = delete;

  // What was left out, one printable line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Plans the mount at /agent and hands it over. This object must outlive the cell: it pins the
  // inode that the attestation looks for.
  Status AddTo(LaunchRequest& request);

 private:
  AgentSnapshot() = default;

  std::string source_;  // the agent directory
  UniqueFd mount_;      // detached
  UniqueFd root_;       // of it
  std::vector<std::string> warnings_;
};

}  // namespace taskcell::native

#pragma once

#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/mounts/scratch_directory.h"
#include "launcher/native/request.h"

namespace taskcell::native {

// A private copy of an agent directory's allowed entries, which a cell sees at /agent. It lives as
// long as this object does, in a scratch directory of its own.
class AgentSnapshot {
 public:
  static Result<AgentSnapshot> Make(const std::string& agent_directory, const std::string& run_id);

  AgentSnapshot(AgentSnapshot&&) noexcept = default;
  AgentSnapshot& operator=(AgentSnapshot&&) = delete;

  // What was left out, one printable line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Plans the mount at /agent. This object must outlive the cell.
  Status AddTo(LaunchRequest& request) const;

 private:
  explicit AgentSnapshot(mounts::ScratchDirectory directory) : directory_(std::move(directory)) {}

  mounts::ScratchDirectory directory_;
  UniqueFd copy_;  // below it
  std::vector<std::string> warnings_;
};

}  // namespace taskcell::native

#pragma once

#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/native/request.h"

namespace taskcell::native {

// A private copy of an agent directory's allowed entries, which a cell sees at /agent. It lives in
// a directory of its own below $XDG_RUNTIME_DIR or /tmp as long as this object does; what a killed
// launcher left there goes with the same user's next one (its lock is free then).
class AgentSnapshot {
 public:
  static Result<AgentSnapshot> Make(const std::string& agent_directory, const std::string& run_id);

  AgentSnapshot(AgentSnapshot&&) noexcept = default;
  AgentSnapshot& operator=(AgentSnapshot&&) = delete;
  ~AgentSnapshot();

  // What was left out, one printable line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Plans the mount at /agent. This object must outlive the cell.
  Status AddTo(LaunchRequest& request) const;

 private:
  AgentSnapshot() = default;

  UniqueFd base_;  // the directory that holds ours
  std::string name_;
  std::string path_;  // of the copy itself
  UniqueFd lock_;     // ours, locked
  UniqueFd copy_;
  std::vector<std::string> warnings_;
};

}  // namespace taskcell::native

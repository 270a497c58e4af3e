#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/cell/cell_plan.h"
#include "launcher/mounts/scratch_directory.h"
#include "probe/attack/bait.h"
#include "probe/attack/exchanger.h"
#include "probe/attack/targets.h"

namespace taskcell::attack {

// Where the tools directory is in every cell that is attacked.
inline constexpr char kToolsInside[] = "/run/taskcell/attack";

// What stands outside of the cells to be reached by an attack and by nothing else: files, and what
// Bait lays. Everything goes with the object.
class World {
 public:
  // `attacker` is the path of taskcell-attacker.
  static Result<World> Make(const std::string& attacker, const std::string& run_id);

  // taskcell-attacker where its user, nobody for root, owns it.
  std::string program() const { return scratch_.path() + "/attacker"; }
  // What the payloads aim at, as it is called outside and inside.
  const Targets& outside() const { return outside_; }
  Targets inside() const;
  // The planned mount of the tools directory; pinned as long as this object lives.
  const cell::PlannedMount& tools() const { return tools_; }
  // A descriptor of the scratch directory, and a socket: what a launcher may leak into a cell.
  int leaked_directory() const { return scratch_.fd(); }
  int leaked_socket() const { return bait_->socket(); }

  // Exchanges the link and the target in the hostile root of that name.
  Result<Exchanger> Exchange(std::string_view root) const;

  // Forgets what came until now, and takes the host as it is for how it is to be.
  Status Settle();
  // What is another way than when Settle was called: empty where nothing got out.
  std::vector<std::string> Changes();

 private:
  explicit World(mounts::ScratchDirectory scratch) : scratch_(std::move(scratch)) {}

  Status MakeFiles(const std::string& attacker);
  Status MakeRoots();
  Status MakePrivilegedTools(std::string_view content);
  Result<std::map<std::string, std::string>> Look() const;

  mounts::ScratchDirectory scratch_;
  Targets outside_;
  cell::PlannedMount tools_;
  UniqueFd pin_;
  std::optional<Bait> bait_;
  std::map<std::string, std::string> before_;
};

// Removes what this user's killed processes left outside of every home: their scratch directories,
// whatever they were for, and what a World had beside its own. Returns the directories' paths; with
// `dry_run` they are only found.
std::vector<std::string> RemoveAbandoned(bool dry_run);

}  // namespace taskcell::attack

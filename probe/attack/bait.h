#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/process.h"
#include "probe/attack/bait_objects.h"
#include "probe/attack/targets.h"

namespace taskcell::attack {

// What of the host an attack reaches for that is no file: listening sockets, objects of the
// kernel's, a process of the user's. Everything goes with the object.
class Bait {
 public:
  // `program` is taskcell-attacker, `directory` a private one, `run_id` what makes names unique.
  // Fills in where it all is.
  static Result<Bait> Lay(const std::string& program, const std::string& directory,
                          const std::string& run_id, Targets& targets);
  // A connected socket, as a gate is one.
  int socket() const { return gate_.get(); }

  // Forgets who came, and takes the objects as they are.
  void Settle();
  // Who came since, what was done to an object, and what is gone.
  std::vector<std::string> Changes() const;

 private:
  Bait() = default;

  Status ListenEverywhere(const std::string& directory, const std::string& run_id,
                          Targets& targets);
  Status StartVictim(const std::string& program, Targets& targets);

  struct Listener {
    std::string what;
    UniqueFd fd;
  };
  std::vector<Listener> listeners_;
  std::optional<BaitObjects> objects_;
  std::map<std::string, std::string> before_;  // how they were at Settle
  UniqueFd gate_;
  UniqueFd gate_end_;
  sys::Child victim_;
};

}  // namespace taskcell::attack

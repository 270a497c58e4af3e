#pragma once

#include <string>
#include <vector>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/process.h"
#include "probe/attack/targets.h"

namespace taskcell::attack {

// What of the host an attack reaches for that is no file: listening sockets, System V and POSIX
// objects that everybody may use, a process of the user's. Everything goes with the object.
class Bait {
 public:
  // `program` is taskcell-attacker, `directory` a private one, `run_id` what makes names unique.
  // Fills in where it all is.
  static Result<Bait> Lay(const std::string& program, const std::string& directory,
                          const std::string& run_id, Targets& targets);
  Bait(Bait&& other) noexcept = default;
  Bait& operator=(Bait&&) = delete;
  ~Bait();

  // A connected socket, as a gate is one.
  int socket() const { return gate_.get(); }

  // Forgets who came.
  void Settle();
  // Who came since, and what is gone.
  std::vector<std::string> Changes() const;

 private:
  Bait() = default;

  Status ListenEverywhere(const std::string& directory, const std::string& run_id,
                          Targets& targets);
  Status MakeObjects(const std::string& run_id, Targets& targets);
  Status StartVictim(const std::string& program, Targets& targets);

  struct Listener {
    std::string what;
    UniqueFd fd;
  };
  // One System V object, or a name below a file system of the kernel's.
  struct Object {
    long remove_call = 0;
    uint64_t id = 0;
    std::string name;
  };
  std::vector<Listener> listeners_;
  std::vector<Object> objects_;
  UniqueFd gate_;
  UniqueFd gate_end_;
  sys::Child victim_;
};

}  // namespace taskcell::attack

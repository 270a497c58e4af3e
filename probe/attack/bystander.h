#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "launcher/base/result.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/process.h"

namespace taskcell::attack {

// A process in no cell that goes on using what the kernel counts by user: an inotify instance, a
// pipe, a descriptor sent to itself, again and again. It is the user who makes the cells; for root
// nobody, as cells of root's are. Ends with the object and with its parent.
class Bystander {
 public:
  // It has had everything once. An Error where it could not.
  static Result<Bystander> Start();

  struct Seen {
    uint64_t rounds = 0;               // in which it had all of them
    uint64_t smallest_pipe_bytes = 0;  // a user with many pages of pipes gets small ones
    std::string denied;                // empty, or what it could not have, with the reason
  };
  // After one more round.
  Result<Seen> End();

 private:
  Bystander(sys::Child child, UniqueFd stop, UniqueFd told)
      : stop_(std::move(stop)), told_(std::move(told)), child_(std::move(child)) {}

  UniqueFd stop_;
  UniqueFd told_;
  sys::Child child_;
};

// What is said of it beside the outcome of an attack. Pure.
std::string Describe(const Bystander::Seen& seen);

}  // namespace taskcell::attack

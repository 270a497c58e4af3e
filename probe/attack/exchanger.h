#pragma once

#include <string>

#include "launcher/base/result.h"
#include "launcher/sys/process.h"

namespace taskcell::attack {

// A process that exchanges two names all the time: whoever looks one up finds now what the one
// stood for, now the other. Killed with the object, with its parent, and in any case after a while.
class Exchanger {
 public:
  static Result<Exchanger> Start(const std::string& first, const std::string& second);

 private:
  explicit Exchanger(sys::Child child) : child_(std::move(child)) {}

  sys::Child child_;
};

}  // namespace taskcell::attack

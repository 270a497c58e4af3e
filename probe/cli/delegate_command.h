#pragma once

#include <string>

namespace taskcell::probe {

// What the command line of `taskcell-probe delegate` says. At most one of apply and revert.
struct DelegateOptions {
  std::string user;  // a name or a uid; "" for the caller
  bool apply = false;
  bool revert = false;
  bool json = false;
};

// Prints what makes limits hold for the user on this host, makes it so, or undoes that, and returns
// the exit status of host_command.h: kExitReady where limits are delegated, with `apply` where
// taskcell-probe live passes as the user, with `revert` where nothing is left.
int DelegateCommand(const DelegateOptions& options);

}  // namespace taskcell::probe

#include "launcher/sys/signal_mask.h"

#include "launcher/sys/failure.h"

namespace taskcell::sys {

SignalsBlocked::~SignalsBlocked() {
  // ignoring: it fails for a wrong first argument only
  if (restores_) (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

Result<SignalsBlocked> BlockAllSignals() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  int err = ::pthread_sigmask(SIG_BLOCK, &all, &before);
  if (err != 0) return FailureOf(err, "pthread_sigmask");
  return SignalsBlocked(before);
}

}  // namespace taskcell::sys

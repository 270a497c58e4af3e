#pragma once

#include <csignal>

#include "launcher/base/result.h"

namespace taskcell::sys {

// While it lives every signal is blocked in the calling thread, and in threads made meanwhile for
// good. The destructor restores the mask that was before.
class [[nodiscard]] SignalsBlocked {
 public:
  explicit SignalsBlocked(const sigset_t& before) : before_(before), restores_(true) {}
  SignalsBlocked(SignalsBlocked&& other) noexcept
      : before_(other.before_), restores_(other.restores_) {
    other.restores_ = false;
  }
  SignalsBlocked& operator=(SignalsBlocked&&) = delete;
  ~SignalsBlocked();

 private:
  sigset_t before_;
  bool restores_;
};

// pthread_sigmask(SIG_BLOCK) of all signals.
Result<SignalsBlocked> BlockAllSignals();

}  // namespace taskcell::sys

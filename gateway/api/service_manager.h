#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "gateway/config/environment.h"

namespace taskcell::gateway {

// The service manager that started this process, told what it wants to know (sd_notify(3)). Does
// nothing where there is none.
class ServiceManager {
 public:
  // By NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID of the environment.
  static ServiceManager In(const Environment& environment);

  // "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=...". What cannot be sent is lost: the service
  // manager finds out by itself.
  void Tell(std::string_view state) const;

  // How often it wants to hear of us, halved: nullopt where it does not.
  std::optional<std::chrono::milliseconds> watchdog() const { return watchdog_; }

 private:
  std::string socket_;
  std::optional<std::chrono::milliseconds> watchdog_;
};

}  // namespace taskcell::gateway

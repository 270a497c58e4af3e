#include "gateway/api/service_manager.h"

#include "launcher/base/text.h"
#include "launcher/sys/self.h"
#include "launcher/sys/unix_socket.h"

namespace taskcell::gateway {

ServiceManager ServiceManager::In(const Environment& environment) {
  ServiceManager manager;
  manager.socket_ = Lookup(environment, "NOTIFY_SOCKET");
  constexpr uint64_t kHalfInMilliseconds = 2000;
  const std::optional<uint64_t> usec = ParseUnsigned(Lookup(environment, "WATCHDOG_USEC"));
  const std::string_view pid = Lookup(environment, "WATCHDOG_PID");
  const bool is_meant = pid.empty() || pid == std::to_string(sys::OwnPid());
  if (usec.has_value() && *usec >= kHalfInMilliseconds && is_meant)
    manager.watchdog_ = std::chrono::milliseconds(*usec / kHalfInMilliseconds);
  return manager;
}

void ServiceManager::Tell(std::string_view state) const {
  if (socket_.empty()) return;
  (void)sys::SendDatagram(socket_, state);  // ignoring: see the header
}

}  // namespace taskcell::gateway

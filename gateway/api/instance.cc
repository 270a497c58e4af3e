#include "gateway/api/instance.h"

#include <sys/stat.h>

#include <cerrno>

#include "gateway/ledger/lock_file.h"
#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/self.h"
#include "launcher/sys/unix_socket.h"

namespace taskcell::gateway {
namespace {

constexpr char kLockName[] = "taskcell.lock";
constexpr char kLockFile[] = "locks/taskcell.lock";
constexpr std::size_t kMaxHolderBytes = 64;

Result<UniqueFd> TakeLock(const Home& home) {
  Result<UniqueFd> file = TakeHomeLock(home.fd.get(), kLockName);
  if (!file.ok() && file.error().err == EWOULDBLOCK) {
    Result<std::string> holder = sys::ReadFile(home.fd.get(), kLockFile, kMaxHolderBytes);
    return Error(Kind::kConfig,
                 Text("another taskcell-gateway serves this home (process ",
                      holder.ok() ? Printable(Trim(holder.value())) : std::string("unknown"),
                      "); end it first"))
        .Coded("gateway_running");
  }
  if (!file.ok()) return file;
  TRY(sys::Truncate(file->get(), 0));
  TRY(sys::WriteAll(file->get(), Text(sys::OwnPid(), "\n")));
  return file;
}

// Under the lock the socket of a gateway that is gone is nobody's.
Status RemoveStale(const Home& home) {
  Result<struct stat> there = sys::StatAt(home.fd.get(), kGatewaySocket);
  if (!there.ok()) return there.error().err == ENOENT ? Ok() : Status(there.error());
  if (!S_ISSOCK(there->st_mode))
    return Error(Kind::kConfig, Text(kGatewaySocket, " is in the home and is no socket; move it"));
  return sys::RemoveFile(home.fd.get(), kGatewaySocket);
}

}  // namespace

Result<Instance> ClaimHome(const Home& home) {
  Instance instance;
  instance.lock = TRY(TakeLock(home));
  TRY(RemoveStale(home));
  instance.listener =
      TRY(sys::ListenStream(Text("/proc/self/fd/", home.fd.get(), "/", kGatewaySocket)));
  return instance;
}

void ReleaseHome(const Home& home) {
  (void)sys::RemoveFile(home.fd.get(), kGatewaySocket);  // ignoring: the next one removes it
}

}  // namespace taskcell::gateway

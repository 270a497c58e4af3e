#include "gateway/task/platform.h"

#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/other_process.h"
#include "launcher/sys/self.h"
#include "launcher/sys/socket.h"

namespace taskcell::gateway {
namespace {

// Only what says that the call is not there: a lack of descriptors, say, is no matter of the host.
Status Judge(const Error& error, std::string_view what) {
  const bool missing = error.err == ENOSYS || error.err == EPROTONOSUPPORT ||
                       error.err == ESOCKTNOSUPPORT || error.err == EPERM || error.err == EINVAL;
  if (!missing) return Ok();
  return Error(Kind::kUnsupported,
               Text("the task sandbox needs a Linux host with ", what, " (", error.text,
                    "); a newer kernel has it, unless a filter around the gateway denies it"))
      .Coded("unsupported_platform");
}

}  // namespace

Status CheckPlatform() {
  Result<sys::SocketPair> gate = sys::MakePacketPair();
  if (!gate.ok()) TRY(Judge(gate.error(), "packet sockets between processes"));
  Result<UniqueFd> process = sys::OpenPidfd(sys::OwnPid());
  if (!process.ok()) TRY(Judge(process.error(), "pidfd_open"));
  return Ok();
}

}  // namespace taskcell::gateway

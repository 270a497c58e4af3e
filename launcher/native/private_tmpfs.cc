#include "launcher/native/private_tmpfs.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <string>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/native/namespace_fault.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {
namespace {

constexpr std::string_view kMade = "made";

// In the namespaces of the helper: its ids are the caller's, under the same numbers.
Result<UniqueFd> MakeInside(uid_t uid, gid_t gid, const std::string& size,
                            const std::string& inodes) {
  auto line = [](auto id) { return Text(id, " ", id, " 1\n"); };
  TRY(sys::WriteControl(AT_FDCWD, "/proc/self/setgroups", "deny"));
  TRY(sys::WriteControl(AT_FDCWD, "/proc/self/uid_map", line(uid)));
  TRY(sys::WriteControl(AT_FDCWD, "/proc/self/gid_map", line(gid)));
  return sys::MakeFileSystem(
      "tmpfs", {{"size", size.c_str()}, {"nr_inodes", inodes.c_str()}, {"mode", "0700"}},
      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

}  // namespace

Result<UniqueFd> MakePrivateTmpfs(uint64_t size_bytes, uint64_t max_inodes) {
  const std::string size = std::to_string(size_bytes);
  const std::string inodes = std::to_string(max_inodes);
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  TRY(sys::AssertSingleThread());
  sys::SocketPair channel = TRY(sys::MakePacketPair());
  Result<sys::Cloned> cloned = sys::CloneProcess(CLONE_NEWUSER | CLONE_NEWNS);
  if (!cloned.ok()) return ExplainNamespaceFault(std::move(cloned).error());
  if (cloned->in_child) {
    Result<UniqueFd> made = MakeInside(uid, gid, size, inodes);
    // ignoring: without a reader the parent is gone
    (void)(made.ok() ? sys::SendPacket(channel.second.get(), kMade, made->get())
                     : sys::SendPacket(channel.second.get(), made.error().text));
    sys::ExitNow(0);
  }
  channel.second.Reset();
  std::array<char, 4096> buffer;
  sys::Packet packet = TRY(sys::ReceivePacket(channel.first.get(), buffer, true));
  TRY(cloned->child.Wait());
  if (packet.passed.valid()) return std::move(packet.passed);
  std::string why = packet.size == 0 ? "its maker died" : std::string(buffer.data(), packet.size);
  return ExplainNamespaceFault(Error(Kind::kDenied, "a tmpfs of its own: " + why));
}

}  // namespace taskcell::native

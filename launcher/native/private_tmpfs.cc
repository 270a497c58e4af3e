#include "launcher/native/private_tmpfs.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "launcher/base/text.h"
#include "launcher/native/namespace_fault.h"
#include "launcher/sys/file.h"
#include "launcher/sys/mount.h"
#include "launcher/sys/privilege.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"

namespace taskcell::native {
namespace {

constexpr std::string_view kMade = "made";
constexpr uint64_t kAttributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

Status MapOwnIds(uid_t uid, gid_t gid) {
  auto line = [](auto id) { return Text(id, " ", id, " 1\n"); };
  sys::Proc proc = TRY(sys::Proc::Open());
  TRY(proc.Write("self/setgroups", "deny"));
  TRY(proc.Write("self/uid_map", line(uid)));
  TRY(proc.Write("self/gid_map", line(gid)));
  // Not earlier, as in a cell's child. It has every capability here, and the caller's descriptors
  // (CVE-2026-41163).
  return sys::SetNotDumpable();
}

// What a cell's child does to its mounts. Where it cannot it does without all of these calls, and
// mount(2) takes no mount that is in no tree.
Status TryMountCalls() {
  UniqueFd mount = TRY(sys::MakeFileSystem("tmpfs", {}, kAttributes));
  TRY(sys::SetMountAttributes(mount.get(), MOUNT_ATTR_RDONLY, 0, true));
  UniqueFd root = TRY(sys::Open("/", O_PATH | O_DIRECTORY));
  TRY(sys::AttachMount(mount.get(), root.get()));
  TRY(sys::CloneMount(mount.get(), true));
  return Ok();
}

// In the namespaces of the helper: its ids are the caller's, under the same numbers.
Result<UniqueFd> MakeInside(uid_t uid, gid_t gid, const std::string& size,
                            const std::string& inodes) {
  TRY(MapOwnIds(uid, gid));
  Result<UniqueFd> made = sys::MakeFileSystem(
      "tmpfs", {{"size", size.c_str()}, {"nr_inodes", inodes.c_str()}, {"mode", "0700"}},
      kAttributes);
  Status rest = made.ok() ? TryMountCalls() : Ok();
  const Error* wrong = nullptr;
  if (!made.ok()) wrong = &made.error();
  if (!rest.ok()) wrong = &rest.error();
  if (wrong == nullptr) return made;
  // As root of this namespace: EPERM is a filter's.
  if (wrong->err == ENOSYS || wrong->err == EPERM)
    return Error(Kind::kUnsupported, wrong->text, ENOSYS);
  return *wrong;
}

// What the helper tells of an error: its errno, then its text.
std::string Told(const Error& error) { return Text(error.err, " ", error.text); }

Error ParseTold(std::string_view told) {
  std::size_t space = told.find(' ');
  std::optional<uint64_t> err = ParseUnsigned(told.substr(0, space));
  if (space == told.npos || !err) return Error(Kind::kDenied, "its maker died");
  Kind kind = *err == ENOSYS ? Kind::kUnsupported : Kind::kDenied;
  return Error(kind, std::string(told.substr(space + 1)), static_cast<int>(*err));
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
                     : sys::SendPacket(channel.second.get(), Told(made.error())));
    sys::ExitNow(0);
  }
  channel.second.Reset();
  std::array<char, 4096> buffer;
  sys::Packet packet = TRY(sys::ReceivePacket(channel.first.get(), buffer, true));
  TRY(cloned->child.Wait());
  if (packet.passed.valid()) return std::move(packet.passed);
  Error why = ParseTold(std::string_view(buffer.data(), packet.size));
  return ExplainNamespaceFault(std::move(why).With("a tmpfs of its own"));
}

}  // namespace taskcell::native

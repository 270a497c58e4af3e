#include "probe/cells/gate_directory.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "launcher/base/text.h"
#include "launcher/sys/file.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"

namespace taskcell::probe {
namespace {

constexpr char kDirectoryName[] = "gate.d";
constexpr char kSocketName[] = "gate";
constexpr mode_t kDirectoryMode = 0711;
constexpr mode_t kSocketMode = 0666;
constexpr mode_t kForOthers = 0077;

Error Mismatch(std::string_view text, int err = 0) {
  return Error(Kind::kViolation, Text("gate: ", text), err).Coded("cell_mismatch");
}

int MillisecondsUntil(GateDirectory::Clock::time_point deadline) {
  auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - GateDirectory::Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60000));
}

Status CheckPrivate(int fd, const std::string& path) {
  struct stat status = TRY(sys::Stat(fd));
  if (status.st_uid == ::geteuid() && (status.st_mode & kForOthers) == 0) return Ok();
  return Error(Kind::kDenied, Text("'", Printable(path), "' must belong to uid ", ::geteuid(),
                                   " and be closed to others (mode 0700)"));
}

}  // namespace

Result<GateDirectory> GateDirectory::Make(const std::string& run_directory) {
  auto make = [&]() -> Result<GateDirectory> {
    GateDirectory gate;
    gate.run_directory_ = TRY(sys::OpenAt2(AT_FDCWD, run_directory, O_RDONLY | O_DIRECTORY,
                                           RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS));
    int run = gate.run_directory_.get();
    TRY(CheckPrivate(run, run_directory));
    TRY(sys::MakeDirectory(run, kDirectoryName, 0700));
    gate.directory_exists_ = true;
    gate.directory_ =
        TRY(sys::OpenAt2(run, kDirectoryName, O_RDONLY | O_DIRECTORY, sys::kResolveBeneath));
    int directory = gate.directory_.get();
    // The path of a home may be longer than a socket's address can be; this one never is.
    gate.listener_ = TRY(sys::ListenPackets(Text("/proc/self/fd/", directory, "/", kSocketName)));
    gate.socket_exists_ = true;
    TRY(sys::SetNonBlocking(gate.listener_.get()));
    TRY(sys::ChangeModeAt(directory, kSocketName, kSocketMode));
    TRY(sys::ChangeMode(directory, kDirectoryMode));  // last: open to the cell when all is there
    struct stat status = TRY(sys::Stat(directory));
    gate.mount_.source = TRY(sys::ReadLink(AT_FDCWD, Text("/proc/self/fd/", directory)));
    gate.mount_.target = kGateMount;
    gate.mount_.kind = cell::EntryKind::kDirectory;
    gate.mount_.device = status.st_dev;
    gate.mount_.inode = status.st_ino;
    return gate;
  };
  auto made = make();
  if (!made.ok()) return std::move(made).error().With("gate directory").Coded("workspace_failed");
  return made;
}

GateDirectory::~GateDirectory() {
  (void)Remove();  // ignoring: the sweep takes what is left
}

Status GateDirectory::CloseListener() {
  listener_.Reset();
  if (!socket_exists_) return Ok();
  TRY(sys::RemoveFile(directory_.get(), kSocketName));
  socket_exists_ = false;
  return Ok();
}

Status GateDirectory::Remove() {
  if (!run_directory_.valid()) return Ok();  // moved from
  TRY(CloseListener());
  if (directory_exists_) TRY(sys::RemoveDirectory(run_directory_.get(), kDirectoryName));
  directory_exists_ = false;
  return Ok();
}

Result<UniqueFd> GateDirectory::AcceptFrom(pid_t pid, int pidfd, Clock::time_point deadline,
                                           int cancel_fd) {
  std::array<struct pollfd, 3> wait = {
      {{listener_.get(), POLLIN, 0}, {pidfd, POLLIN, 0}, {cancel_fd, POLLIN, 0}}};
  while (wait[0].revents == 0) {
    if (wait[2].revents != 0)
      return Error(Kind::kSystem, "gate: no longer waited for, as asked", ECANCELED)
          .Coded("stopped");
    if (Clock::now() >= deadline)
      return Mismatch("the cell's first process did not connect in time", ETIMEDOUT);
    if (wait[1].revents != 0) return Mismatch("the cell's first process ended before it connected");
    TRY(sys::PollAll(wait, MillisecondsUntil(deadline)));
  }
  UniqueFd gate = TRY(sys::Accept(listener_.get()));
  struct ucred peer = TRY(sys::PeerCredentials(gate.get()));
  if (peer.pid != pid) {
    return Mismatch(Text("process ", peer.pid, " connected, not the cell's first process ", pid));
  }
  auto second = sys::Accept(listener_.get());
  if (second.ok()) return Mismatch("a second connection came");
  if (second.error().err != EAGAIN) return std::move(second).error();
  // CRITICAL: the pid was looked up before; only while that very process lives does it prove who
  // the peer is.
  wait[0].fd = -1;
  TRY(sys::PollAll(wait, 0));
  if (wait[1].revents != 0) return Mismatch("the cell's first process ended as it connected");
  TRY(CloseListener());
  return gate;
}

}  // namespace taskcell::probe

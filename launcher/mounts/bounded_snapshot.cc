#include "launcher/mounts/bounded_snapshot.h"

#include <poll.h>

#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/mounts/child_work.h"
#include "launcher/mounts/snapshot_record.h"
#include "launcher/sys/file.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/socket.h"
#include "launcher/sys/spawn.h"

namespace taskcell::mounts {
namespace {

constexpr std::string_view kUnmountable = "agent_dir_unmountable";
constexpr std::string_view kFailed = "workspace_failed";  // not by the agent directory
constexpr int kSocketNumber = 3;
constexpr std::size_t kProgressBytes = 4096;
// What the process between may take longer than the limit it keeps.
constexpr std::chrono::milliseconds kMargin{3000};

// What is asked over the socket, with the agent directory and the store.
struct Request {
  int32_t limit_ms = 0;
  Subtree subtree = Subtree::kPrune;
};

Error Fault(Error error) {
  if (error.err != ETIMEDOUT || !error.code.empty()) return error;
  return std::move(error).With("the agent directory").Coded(kUnmountable);
}

Result<std::string> ContentBytes(Snapshot content) {
  SnapshotRecord record;
  record.snapshot = std::move(content);
  return EncodeRecord(record);
}

Result<Snapshot> ContentOf(const std::string& bytes) {
  return std::move(TRY(ParseRecord(bytes)).snapshot);
}

}  // namespace

Result<Snapshot> SnapshotInTime(int agent_dir_fd, int target_dir_fd, const SnapshotTerms& terms) {
  sys::Memory progress = TRY(sys::MapMemory(kProgressBytes, true));
  SnapshotBounds bounds;
  bounds.progress = progress.bytes();
  auto work = [&]() -> Result<WorkResult> {
    WorkResult made;
    Snapshot content =
        TRY(SnapshotAgentDirectory(agent_dir_fd, target_dir_fd, Subtree::kPrune, bounds));
    made.bytes = TRY(ContentBytes(std::move(content)));
    return made;
  };
  bool is_gone = true;
  Result<WorkResult> done = DoInChild(
      work, {static_cast<int>(terms.limit.count()), terms.stop_fd, progress.bytes()}, is_gone);
  if (!done.ok()) return Fault(std::move(done).error());
  return ContentOf(done->bytes);
}

namespace {

Result<WorkResult> TakeInChild(int agent_dir, int store, const Request& request, int socket) {
  sys::Memory progress = TRY(sys::MapMemory(kProgressBytes, true));
  SnapshotBounds bounds;
  bounds.progress = progress.bytes();
  std::optional<StoredSnapshot> taken;  // the child ends without destroying it
  auto work = [&]() -> Result<WorkResult> {
    taken.emplace(TRY(StoredSnapshot::Take({store, ""}, agent_dir, request.subtree, bounds)));
    return taken->Parts();
  };
  bool is_gone = true;
  Result<WorkResult> done = DoInChild(work, {request.limit_ms, socket, progress.bytes()}, is_gone);
  if (!done.ok() && is_gone) StoredSnapshot::Tidy(store);
  if (!done.ok()) return Fault(std::move(done).error());
  return done;
}

}  // namespace

namespace {

// One request with its answer; false where no more will come.
Result<bool> ServeOne(int socket) {
  Request request;
  std::span<char> bytes(reinterpret_cast<char*>(&request), sizeof request);
  std::vector<UniqueFd> passed;
  const std::size_t got = TRY(sys::ReceiveDescriptors(socket, bytes, passed));
  if (got == 0) return false;
  if (got != sizeof request || passed.size() != 2)
    return Error(Kind::kUsage, "--snapshot-fd: what came is no request");
  const int store = passed[1].get();
  Result<WorkResult> taken = TakeInChild(passed[0].get(), store, request, socket);
  Status sent = SendWork(socket, taken);
  if (sent.ok()) return true;
  if (taken.ok()) {
    taken->passed.clear();  // its lock
    StoredSnapshot::Tidy(store);
  }
  return std::move(sent).error();
}

}  // namespace

Status ServeSnapshots(int socket) {
  while (TRY(ServeOne(socket))) {
  }
  return Ok();
}

Status SnapshotTaker::Start() {
  // One that was there may have been killed since.
  if (child_.valid() && TRY(sys::Poll(child_.pidfd(), POLLIN, 0)) == 0) return Ok();
  sys::SocketPair pair = TRY(sys::MakePacketPair());
  const sys::PassedDescriptor passed = {pair.second.get(), kSocketNumber};
  child_ = TRY(sys::SpawnProgram(
      launcher_, {"taskcell-launch", "--snapshot-fd", std::to_string(kSocketNumber)}, {},
      {&passed, 1}));
  socket_ = std::move(pair.first);
  return Ok();
}

// The next request starts another.
Error SnapshotTaker::Gone(Error error) {
  socket_.Reset();  // it ends the work, and what that has made
  // ignoring: else it is killed
  (void)sys::Poll(child_.pidfd(), POLLIN, static_cast<int>(kMargin.count()));
  child_ = sys::Child();
  return error;
}

Result<StoredSnapshot> SnapshotTaker::Take(const SnapshotStore& store, int agent_dir_fd,
                                           Subtree subtree, const SnapshotTerms& terms) {
  Status started = Start();
  if (!started.ok()) return std::move(started).error().Coded(kFailed);
  const Request request{static_cast<int32_t>(terms.limit.count()), subtree};
  const std::string_view bytes(reinterpret_cast<const char*>(&request), sizeof request);
  const std::array<int, 2> directories = {agent_dir_fd, store.fd};
  Status asked = sys::SendDescriptors(socket_.get(), bytes, directories);
  if (!asked.ok() && asked.error().err != EPIPE)
    return Gone(std::move(asked).error().Coded(kFailed));
  std::array<struct pollfd, 2> wait = {{{socket_.get(), POLLIN, 0}, {terms.stop_fd, POLLIN, 0}}};
  Result<int> waited = sys::PollAll(wait, static_cast<int>((terms.limit + kMargin).count()));
  if (!waited.ok()) return Gone(std::move(waited).error().Coded(kFailed));
  if (wait[0].revents != 0) {
    Result<WorkResult> parts = ReceiveWork(socket_.get());
    if (!parts.ok() && parts.error().err == ECONNRESET)
      return Gone(std::move(parts).error().With(launcher_).Coded(kFailed));
    return StoredSnapshot::FromParts(store, TRY(std::move(parts)));
  }
  if (wait[1].revents != 0)
    return Gone(
        Error(Kind::kSystem, "the snapshot was no longer wanted", ECANCELED).Coded("stopped"));
  return Gone(
      Error(Kind::kSystem, "taskcell-launch did not say what became of the snapshot", ETIMEDOUT)
          .Coded(kFailed));
}

}  // namespace taskcell::mounts

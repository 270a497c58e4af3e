// Memory beyond its limit, in every form it has. Each bomb is bounded by itself.
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/limit.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "memory";
constexpr uint64_t kMemoryPast = uint64_t{16} << 20U;

Attempted MemoryBomb(const Targets& targets) {
  return BreakLimit({live::Payload::kMemory, targets.memory_bytes});
}

// Memory of a file that is in no directory: it counts for the cell, and for no process.
Attempted FillFileInMemory(const Targets& targets) {
  Result<UniqueFd> file = sys::MakeMemfd("bomb", 0);
  if (!file.ok()) return {file.error().err, "memfd_create"};
  const std::string block(kBlock, 'x');
  for (uint64_t size = 0; size < targets.memory_bytes + kMemoryPast; size += kBlock) {
    Status written = sys::WriteAll(file->get(), block);
    if (!written.ok()) return {written.error().err, Text("after ", size)};
  }
  return {};
}

constexpr uint64_t kHugePage = uint64_t{2} << 20U;

Attempted MakeFileOfHugePages(const Targets& /*targets*/) {
  return Of(Call(SYS_memfd_create, "bomb", MFD_CLOEXEC | MFD_HUGETLB));
}

Attempted MakeSegmentOfHugePages(const Targets& /*targets*/) {
  int64_t segment = Call(SYS_shmget, IPC_PRIVATE, kHugePage, IPC_CREAT | SHM_HUGETLB | 0600);
  // Outside it would stay.
  if (segment >= 0) (void)Call(SYS_shmctl, segment, IPC_RMID, 0);
  return Of(segment);
}

// A file that is larger than what may be kept of it in memory: each page is brought in by being
// looked at.
Attempted FillPageCache(const Targets& targets) {
  int64_t opened = OpenFile(targets.scratch, O_TMPFILE | O_RDWR);
  if (opened < 0) return Of(opened, targets.scratch);
  UniqueFd file(static_cast<int>(opened));
  uint64_t size = targets.memory_bytes + kMemoryPast;
  int64_t grown = Call(SYS_ftruncate, file.get(), size);
  if (grown < 0) return Of(grown, "ftruncate");
  int64_t mapped = Call(SYS_mmap, 0, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped < 0) return Of(mapped, "mmap");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a bare call answers with a number
  const auto* bytes = reinterpret_cast<const volatile char*>(mapped);
  constexpr uint64_t kPage = 4096;
  uint64_t sum = 0;
  for (uint64_t at = 0; at < size; at += kPage) sum += static_cast<uint64_t>(bytes[at]);
  return {0, Text(size >> 20U, " MiB looked at, sum ", sum)};
}

// Fills `socket` until it takes no more; how much that was.
uint64_t FillSocket(int socket, const std::string& block) {
  uint64_t total = 0;
  while (true) {
    int64_t sent =
        Call(SYS_sendto, socket, block.data(), block.size(), MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
    if (sent <= 0) return total;
    total += static_cast<uint64_t>(sent);
  }
}

Attempted FillSocketBuffers(const Targets& targets) {
  const std::string block(kBlock, 'x');
  constexpr int kLargest = 1 << 20;
  std::vector<UniqueFd> sockets;
  uint64_t total = 0;
  while (total < targets.memory_bytes + kMemoryPast) {
    std::array<int, 2> pair = {-1, -1};
    int64_t made = Call(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data());
    if (made < 0) return Of(made, Text("after ", total >> 20U, " MiB"));
    uint64_t before = total;
    for (int socket : pair) {
      sockets.emplace_back(socket);
      (void)Call(SYS_setsockopt, socket, SOL_SOCKET, SO_SNDBUF, &kLargest, sizeof kLargest);
      total += FillSocket(socket, block);
    }
    if (total == before) return {ENOBUFS, Text("after ", total >> 20U, " MiB")};
  }
  return {};
}

Attempted FillPipes(const Targets& targets) {
  constexpr int kPipeBytes = 1 << 20;
  const std::string block(kPipeBytes, 'x');
  std::vector<sys::Pipe> pipes;
  for (uint64_t total = 0; total < targets.memory_bytes + kMemoryPast; total += kPipeBytes) {
    Result<sys::Pipe> pipe = sys::MakePipe(O_NONBLOCK);
    if (!pipe.ok()) return {pipe.error().err, Text("after ", total >> 20U, " MiB")};
    int64_t grown = Call(SYS_fcntl, pipe->write_end.get(), F_SETPIPE_SZ, kPipeBytes);
    if (grown < 0) {
      StayFull();
      return Of(grown, Text("after ", total >> 20U, " MiB"));
    }
    (void)Call(SYS_write, pipe->write_end.get(), block.data(), block.size());
    pipes.push_back(std::move(pipe).value());
  }
  return {};
}

// Outside on a tmpfs of its own.
Attempted InodeBomb(const Targets& targets) {
  // The kernel takes some 900 for an inode and its name: a third more than the limit.
  constexpr uint64_t kBytesEach = 1000;
  (void)Call(SYS_mount, "none", targets.scratch.c_str(), "tmpfs", 0, 0);
  uint64_t most = (targets.memory_bytes + kMemoryPast) / kBytesEach;
  for (uint64_t i = 0; i < most; ++i) {
    std::string path = Text(targets.scratch, "/", i);
    int64_t made = Call(SYS_mknodat, AT_FDCWD, path.c_str(), 0100600, 0);
    if (made < 0) return Of(made, Text("after ", i));
  }
  return {};
}

constexpr Payload kPayloads[] = {
    {"memory-bomb",
     kTopic,
     "take more memory than its limit",
     Control::kUser,
     {-SIGKILL, ENOMEM},
     MemoryBomb,
     Way::kAlone},
    {"memory-file-bomb",
     kTopic,
     "take more memory than its limit, as a file without a name",
     Control::kUser,
     {-SIGKILL, ENOMEM},
     FillFileInMemory,
     Way::kAlone},
    {"page-cache-bomb",
     kTopic,
     "take more memory than its limit, as pages of a file",
     Control::kUser,
     {-SIGKILL, -SIGBUS},
     FillPageCache,
     Way::kAlone},
    {"socket-buffer-bomb",
     kTopic,
     "take more memory than its limit, as bytes on their way",
     Control::kUser,
     {-SIGKILL, EMFILE, ENOBUFS},
     FillSocketBuffers,
     Way::kAlone},
    {"pipe-bomb",
     kTopic,
     "take more memory than its limit, as bytes in pipes",
     Control::kRoot,
     // EPERM: the quota of its uid, which is not the gateway's.
     {-SIGKILL, EMFILE, EPERM},
     FillPipes,
     Way::kQuota},
    {"huge-pages",
     kTopic,
     "take huge pages, which no memory limit counts",
     Control::kUser,
     {EPERM},
     Make<SYS_mmap, 0, kHugePage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, ~0ULL, 0>},
    {"huge-page-file",
     kTopic,
     "make a file of huge pages",
     Control::kUser,
     {EPERM},
     MakeFileOfHugePages},
    {"huge-page-segment",
     kTopic,
     "make a shared segment of huge pages",
     Control::kRoot,
     {EPERM},
     MakeSegmentOfHugePages},
    {"inode-bomb",
     kTopic,
     "make files without end",
     Control::kNamespace,
     {-SIGKILL, ENOSPC},
     InodeBomb,
     Way::kAlone},
};

}  // namespace

std::span<const Payload> MemoryPayloads() { return kPayloads; }

}  // namespace taskcell::attack

// Bombs. Each is bounded by itself in count and time, a little past the limit it is to break.
#include <fcntl.h>
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/topics.h"
#include "probe/live/breaker/break.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "load";
constexpr uint64_t kPast = 16;
constexpr uint64_t kMemoryPast = uint64_t{32} << 20U;
constexpr std::size_t kBlock = 65536;

// What taskcell-probe live does to each limit.
Attempted Break(const live::Attempt& attempt) {
  Result<live::Finding> finding = live::Break(attempt);
  if (!finding.ok()) return {finding.error().err, finding.error().text};
  std::string reached = Text("after ", finding->reached);
  if (finding->signal != 0) return {-finding->signal, reached};
  return {finding->err, reached};
}

Attempted ForkBomb(const Targets& targets) { return Break({live::Payload::kPids, targets.pids}); }

Attempted DescriptorBomb(const Targets& targets) {
  return Break({live::Payload::kFiles, targets.nofile});
}

Attempted MemoryBomb(const Targets& targets) {
  return Break({live::Payload::kMemory, targets.memory_bytes});
}

Attempted FillDisk(const Targets& targets) {
  return Break({live::Payload::kTmpfs, targets.tmpfs_bytes, targets.scratch});
}

// Past the limit by more than the kernel's own granularity, or held back. A host that is busy with
// something else holds back as well: only who never gets more is held by a limit.
Attempted HogProcessor(const Targets& targets) {
  constexpr uint64_t kUsPerMs = 1000;
  constexpr int kTries = 4;
  const uint64_t share_us = live::kCpuWindowMs * targets.cpu_millis / 1000 * kUsPerMs;
  Attempted outcome;
  for (int tries = 0; tries < kTries; ++tries) {
    Result<live::Finding> finding = live::Break({live::Payload::kCpu, targets.cpu_millis});
    if (!finding.ok()) return {finding.error().err, finding.error().text};
    const bool past = finding->reached > share_us * 8 / 5;
    outcome = {past ? 0 : kHeldBack,
               Text(finding->reached / kUsPerMs, " ms used, ", share_us / kUsPerMs, " due")};
    if (past) return outcome;
  }
  return outcome;
}

void* StayForEver(void* /*nothing*/) {
  while (true) (void)Call(SYS_ppoll, 0, 0, 0, 0, 0);  // ignoring: a wait only
}

Attempted ThreadBomb(const Targets& targets) {
  pthread_attr_t attributes;
  (void)::pthread_attr_init(&attributes);  // ignoring: it always succeeds
  (void)::pthread_attr_setstacksize(&attributes, kBlock);
  Attempted outcome;
  for (uint64_t i = 0; i < targets.pids + kPast && outcome.result == 0; ++i) {
    pthread_t thread;
    outcome = {::pthread_create(&thread, &attributes, StayForEver, nullptr), Text("after ", i)};
  }
  return outcome;
}

Attempted ZombieBomb(const Targets& targets) {
  std::vector<sys::Child> dead;
  dead.reserve(targets.pids + kPast);
  while (dead.size() < targets.pids + kPast) {
    Result<sys::Cloned> cloned = sys::CloneProcess(0);
    if (!cloned.ok()) return {cloned.error().err, Text("after ", dead.size())};
    if (cloned->in_child) sys::ExitNow(0);
    dead.push_back(std::move(cloned->child));
  }
  return {};
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
    if (grown < 0) return Of(grown, Text("after ", total >> 20U, " MiB"));
    (void)Call(SYS_write, pipe->write_end.get(), block.data(), block.size());
    pipes.push_back(std::move(pipe).value());
  }
  return {};
}

// Descriptors on their way through a socket belong to no process, so no process's limit counts
// them.
Attempted SendDescriptors(const Targets& targets) {
  Result<sys::SocketPair> pair = sys::MakePacketPair();
  if (!pair.ok()) return {pair.error().err, "socketpair"};
  std::array<int, sys::kMostDescriptors> passed;
  passed.fill(pair->second.get());
  std::vector<sys::SocketPair> full;
  for (uint64_t sent = 0; sent < targets.nofile + 4 * kPast;) {
    Status status = sys::SendDescriptors(pair->first.get(), "x", passed);
    if (status.ok()) {
      sent += passed.size();
      continue;
    }
    if (status.error().err != EAGAIN) return {status.error().err, Text("after ", sent)};
    full.push_back(std::move(pair).value());  // it holds what is on its way
    pair = sys::MakePacketPair();
    if (!pair.ok()) return {pair.error().err, Text("after ", sent)};
  }
  return {};
}

// Outside on a tmpfs of its own.
Attempted InodeBomb(const Targets& targets) {
  constexpr uint64_t kBytesEach = 700;  // of the kernel, for an inode and its name
  (void)Call(SYS_mount, "none", targets.scratch.c_str(), "tmpfs", 0, 0);
  uint64_t most = (targets.memory_bytes + kMemoryPast) / kBytesEach;
  for (uint64_t i = 0; i < most; ++i) {
    std::string path = Text(targets.scratch, "/", i);
    int64_t made = Call(SYS_mknodat, AT_FDCWD, path.c_str(), 0100600, 0);
    if (made < 0) return Of(made, Text("after ", i));
  }
  return {};
}

// The kernel's uid this process runs as, when it is mapped; the gateway's is in the targets.
bool IsGatewaysUid(uint64_t gateway_uid) {
  Result<std::string> map = sys::ReadFile(AT_FDCWD, "/proc/self/uid_map", 4096);
  if (!map.ok()) return true;
  for (std::string_view line : Split(map.value(), '\n')) {
    std::vector<std::string_view> words = Words(line);
    if (words.size() != 3) continue;
    uint64_t inside = ParseUnsigned(words[0]).value_or(0);
    uint64_t outside = ParseUnsigned(words[1]).value_or(0);
    uint64_t count = ParseUnsigned(words[2]).value_or(0);
    uint64_t own = ::geteuid();
    if (own >= inside && own - inside < count) return outside + (own - inside) == gateway_uid;
  }
  return true;
}

// More instances than a cell may have and fewer than a user: enough to show that it could go on
// until the gateway has none.
Attempted InotifyBomb(const Targets& targets) {
  constexpr int kInstances = 64;
  std::vector<UniqueFd> instances;
  for (int i = 0; i < kInstances; ++i) {
    int64_t made = Call(SYS_inotify_init1, O_CLOEXEC);
    if (made < 0) return Of(made, Text("after ", i));
    instances.emplace_back(static_cast<int>(made));
  }
  if (!IsGatewaysUid(targets.gateway_uid)) return {kOtherUser};
  return {};
}

Attempted OutputBomb(const Targets& targets) {
  const std::string block(kBlock, 'x');
  int out = Call(SYS_fcntl, 3, F_GETFD, 0) >= 0 ? 3 : STDOUT_FILENO;
  for (uint64_t size = 0; size < targets.output_bytes * 4; size += kBlock) {
    Status written = sys::WriteAll(out, block);
    if (!written.ok()) return {written.error().err, Text("after ", size)};
  }
  (void)sys::WriteAll(out, "\n");  // ignoring: then the outcome is no line of its own
  return {};
}

constexpr Payload kPayloads[] = {
    {"fork-bomb", kTopic, "make processes without end", Control::kUser, {EAGAIN}, ForkBomb},
    {"thread-bomb", kTopic, "make threads without end", Control::kUser, {EAGAIN}, ThreadBomb},
    {"zombie-bomb",
     kTopic,
     "leave dead processes without end",
     Control::kUser,
     {EAGAIN},
     ZombieBomb},
    {"memory-bomb",
     kTopic,
     "take more memory than its limit",
     Control::kUser,
     {-SIGKILL, ENOMEM},
     MemoryBomb},
    {"memory-file-bomb",
     kTopic,
     "take more memory than its limit, as a file without a name",
     Control::kUser,
     {-SIGKILL, ENOMEM},
     FillFileInMemory},
    {"page-cache-bomb",
     kTopic,
     "take more memory than its limit, as pages of a file",
     Control::kUser,
     {-SIGKILL, -SIGBUS},
     FillPageCache},
    {"socket-buffer-bomb",
     kTopic,
     "take more memory than its limit, as bytes on their way",
     Control::kUser,
     {-SIGKILL, EMFILE, ENOBUFS},
     FillSocketBuffers},
    {"pipe-bomb",
     kTopic,
     "take more memory than its limit, as bytes in pipes",
     Control::kRoot,
     // EPERM: the quota of its uid, which is not the gateway's.
     {-SIGKILL, EMFILE, EPERM},
     FillPipes},
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
    {"disk-bomb",
     kTopic,
     "write more into a file system than its size",
     Control::kUser,
     {ENOSPC},
     FillDisk},
    {"inode-bomb",
     kTopic,
     "make files without end",
     Control::kNamespace,
     {-SIGKILL, ENOSPC},
     InodeBomb},
    {"descriptor-bomb", kTopic, "open files without end", Control::kUser, {EMFILE}, DescriptorBomb},
    {"descriptors-on-their-way",
     kTopic,
     "send descriptors that nobody takes",
     Control::kUser,
     {ETOOMANYREFS, EMFILE},
     SendDescriptors},
    {"inotify-bomb",
     kTopic,
     "use its user's inotify instances up",
     Control::kUser,
     {EMFILE, kOtherUser},
     InotifyBomb},
    {"processor-hog",
     kTopic,
     "use more processor time than its share",
     Control::kUser,
     {kHeldBack},
     HogProcessor,
     Way::kBeside},
    {"output-bomb",
     kTopic,
     "print without end",
     Control::kUser,
     {-SIGKILL},
     OutputBomb,
     Way::kFirst},
};

}  // namespace

std::span<const Payload> LoadPayloads() { return kPayloads; }

}  // namespace taskcell::attack

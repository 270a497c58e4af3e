// Bombs of all but memory. Each is bounded by itself in count and time, a little past the limit it
// is to break.
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/process.h"
#include "launcher/sys/socket.h"
#include "probe/attack/payloads/call.h"
#include "probe/attack/payloads/limit.h"
#include "probe/attack/payloads/topics.h"

namespace taskcell::attack {
namespace {

constexpr std::string_view kTopic = "load";
constexpr uint64_t kPast = 16;

Attempted ForkBomb(const Targets& targets) {
  return BreakLimit({live::Payload::kPids, targets.pids});
}

Attempted DescriptorBomb(const Targets& targets) {
  return BreakLimit({live::Payload::kFiles, targets.nofile});
}

Attempted FillDisk(const Targets& targets) {
  return BreakLimit({live::Payload::kTmpfs, targets.tmpfs_bytes, targets.scratch});
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
    const bool past = finding->reached > share_us * 3;
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
    if (status.error().err != EAGAIN) {
      StayFull();
      return {status.error().err, Text("after ", sent)};
    }
    full.push_back(std::move(pair).value());  // it holds what is on its way
    pair = sys::MakePacketPair();
    if (!pair.ok()) {
      StayFull();
      return {pair.error().err, Text("after ", sent)};
    }
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
    if (made < 0) {
      StayFull();
      return Of(made, Text("after ", i));
    }
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
    {"fork-bomb",
     kTopic,
     "make processes without end",
     Control::kUser,
     {EAGAIN},
     ForkBomb,
     Way::kAlone},
    {"thread-bomb",
     kTopic,
     "make threads without end",
     Control::kUser,
     {EAGAIN},
     ThreadBomb,
     Way::kAlone},
    {"zombie-bomb",
     kTopic,
     "leave dead processes without end",
     Control::kUser,
     {EAGAIN},
     ZombieBomb,
     Way::kAlone},
    {"disk-bomb",
     kTopic,
     "write more into a file system than its size",
     Control::kUser,
     {ENOSPC},
     FillDisk,
     Way::kAlone},
    {"descriptor-bomb",
     kTopic,
     "open files without end",
     Control::kUser,
     {EMFILE},
     DescriptorBomb,
     Way::kAlone},
    {"descriptors-on-their-way",
     kTopic,
     "send descriptors that nobody takes",
     Control::kUser,
     {ETOOMANYREFS, EMFILE},
     SendDescriptors,
     Way::kQuota},
    {"inotify-bomb",
     kTopic,
     "use its user's inotify instances up",
     Control::kUser,
     {EMFILE, kOtherUser},
     InotifyBomb,
     Way::kQuota},
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

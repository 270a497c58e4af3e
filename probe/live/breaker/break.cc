#include "probe/live/breaker/break.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "launcher/base/text.h"
#include "launcher/base/unique_fd.h"
#include "launcher/sys/file.h"
#include "launcher/sys/job_control.h"
#include "launcher/sys/memory.h"
#include "launcher/sys/poll.h"
#include "launcher/sys/process.h"
#include "launcher/sys/self.h"
#include "launcher/sys/signals.h"

namespace taskcell::live {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr uint64_t kUsPerMs = 1000;

void Wait(uint64_t ms) { (void)sys::PollAll({}, static_cast<int>(ms)); }  // ignoring: a wait only

// Processes that wait on a pipe nobody ever writes to; they are killed and reaped on the way out.
Result<Finding> BreakPids(uint64_t limit) {
  Finding finding{Payload::kPids};
  sys::Pipe pipe = TRY(sys::MakePipe());
  std::vector<sys::Child> children;
  children.reserve(limit + kPidsPast);
  while (children.size() < limit + kPidsPast) {
    Result<sys::Cloned> cloned = sys::CloneProcess(0);
    if (!cloned.ok()) {
      finding.err = cloned.error().err;
      break;
    }
    if (cloned->in_child) {
      pipe.write_end.Reset();
      char nothing = 0;
      (void)sys::Read(pipe.read_end.get(), {&nothing, 1});  // ignoring: its end is the point
      sys::ExitNow(0);
    }
    children.push_back(std::move(cloned->child));
  }
  finding.reached = children.size();
  return finding;
}

Result<Finding> BreakFiles(uint64_t limit) {
  Finding finding{Payload::kFiles};
  std::vector<UniqueFd> files;
  while (finding.reached < limit + kFilesPast) {
    Result<UniqueFd> file = sys::Duplicate(STDOUT_FILENO);
    if (!file.ok()) {
      finding.err = file.error().err;
      break;
    }
    finding.reached = static_cast<uint64_t>(file->get()) + 1;
    files.push_back(std::move(file).value());
  }
  return finding;
}

Result<Finding> BreakTmpfs(const Attempt& attempt) {
  Finding finding{Payload::kTmpfs, attempt.target};
  // Without a name: it goes with its descriptor, whatever happens.
  UniqueFd file = TRY(sys::Open(attempt.target, O_TMPFILE | O_WRONLY, 0600));
  std::array<char, kPageBytes> page;
  page.fill('x');
  while (finding.reached < attempt.limit + kTmpfsPast) {
    Status written = sys::WriteAll(file.get(), {page.data(), page.size()});
    if (!written.ok()) {
      finding.err = written.error().err;
      break;
    }
    finding.reached += page.size();
  }
  return finding;
}

[[noreturn]] void Compute(uint64_t until_us) {
  while (sys::MonotonicUs() < until_us) {
  }
  sys::ExitNow(0);
}

Result<Finding> BreakCpu(uint64_t cpu_millis) {
  Finding finding{Payload::kCpu};
  sys::Usage before = TRY(sys::ChildrenUsage());
  uint64_t until_us = sys::MonotonicUs() + kCpuWindowMs * kUsPerMs;
  std::vector<sys::Child> children;
  for (uint64_t i = 0; i < CpuProcesses(cpu_millis); ++i) {
    sys::Cloned cloned = TRY(sys::CloneProcess(0));
    if (cloned.in_child) Compute(until_us);
    children.push_back(std::move(cloned.child));
  }
  for (sys::Child& child : children) TRY(child.Wait());
  sys::Usage after = TRY(sys::ChildrenUsage());
  finding.reached = after.user_us + after.system_us - before.user_us - before.system_us;
  return finding;
}

// Every page differs, so that nothing can store them as one.
[[noreturn]] void Fill(std::span<char> memory, volatile uint64_t* reached) {
  for (std::size_t at = 0; at + kPageBytes <= memory.size(); at += kPageBytes) {
    std::memcpy(memory.data() + at, &at, sizeof at);
    *reached = at + kPageBytes;
  }
  sys::ExitNow(0);
}

Result<Finding> BreakMemory(uint64_t limit) {
  Finding finding{Payload::kMemory};
  sys::Memory shared = TRY(sys::MapMemory(kPageBytes, true));
  auto* reached = reinterpret_cast<volatile uint64_t*>(shared.bytes().data());
  sys::Cloned cloned = TRY(sys::CloneProcess(0));
  if (cloned.in_child) {
    Result<sys::Memory> memory = sys::MapMemory(limit + MemoryPast(limit), false);
    if (!memory.ok()) sys::ExitNow(1);
    Fill(memory->bytes(), reached);
  }
  sys::ExitInfo ended = TRY(cloned.child.Wait());
  if (ended.status != 0) return Error(Kind::kSystem, "no address space for it");
  finding.reached = *reached;
  finding.signal = ended.signal;
  return finding;
}

Result<Finding> BreakFlood(uint64_t limit) {
  Finding finding{Payload::kFlood};
  std::string line(65535, 'x');
  line += '\n';
  while (finding.reached < limit + kFloodPast) {
    Status written = sys::WriteAll(STDOUT_FILENO, line);
    if (!written.ok()) {
      finding.err = written.error().err;
      break;
    }
    finding.reached += line.size();
  }
  return finding;
}

Result<Finding> BreakLinger(uint64_t limit_ms) {
  Finding finding{Payload::kLinger};
  // Whatever asks politely, and is heard by nobody.
  TRY(sys::CatchSignals({SIGTERM, SIGINT, SIGHUP, SIGQUIT}));
  uint64_t stay_ms = limit_ms + kLingerPastMs;
  sys::Cloned middle = TRY(sys::CloneProcess(0));
  if (middle.in_child) {
    // ignoring: that one which stays is its own proof, and who would be told ends next
    (void)sys::StartSession();
    Result<sys::Cloned> orphan = sys::CloneProcess(0);
    if (orphan.ok() && orphan->in_child) Wait(stay_ms);
    sys::ExitNow(0);  // without a destructor, which would kill the one that stays
  }
  TRY(middle.child.Wait());
  Wait(stay_ms);
  finding.reached = stay_ms;
  return finding;
}

Result<Finding> Do(const Attempt& attempt) {
  switch (attempt.payload) {
    case Payload::kPids:
      return BreakPids(attempt.limit);
    case Payload::kFiles:
      return BreakFiles(attempt.limit);
    case Payload::kTmpfs:
      return BreakTmpfs(attempt);
    case Payload::kCpu:
      return BreakCpu(attempt.limit);
    case Payload::kMemory:
      return BreakMemory(attempt.limit);
    case Payload::kFlood:
      return BreakFlood(attempt.limit);
    case Payload::kLinger:
      return BreakLinger(attempt.limit);
  }
  return Error(Kind::kInternal, "an unknown payload");
}

}  // namespace

Result<Finding> Break(const Attempt& attempt) {
  uint64_t start_us = sys::MonotonicUs();
  Finding finding = TRY(Do(attempt).With(Word(attempt)));
  finding.wall_us = sys::MonotonicUs() - start_us;
  return finding;
}

}  // namespace taskcell::live

#include "launcher/sys/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"
#include "launcher/sys/file.h"

// The linker's, around what is executed (end(3)).
// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" char __executable_start[];
extern "C" char etext[];  // NOLINT(readability-identifier-naming)

namespace taskcell::sys {

Memory::~Memory() {
  if (bytes_.empty()) return;
  (void)::munmap(bytes_.data(), bytes_.size());  // ignoring: it cannot fail for a whole mapping
}

Result<Memory> MapMemory(std::size_t size, bool shared) {
  int flags = MAP_ANONYMOUS | MAP_NORESERVE | (shared ? MAP_SHARED : MAP_PRIVATE);
  void* start = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (start == MAP_FAILED) return Failure(Text("mmap of ", size, " bytes"));
  return Memory(std::span(static_cast<char*>(start), size));
}

Result<Memory> MapSecretMemory(std::size_t size, bool& is_locked) {
  Memory memory = TRY(MapMemory(size, false));
  char* start = memory.bytes().data();
  if (::madvise(start, size, MADV_DONTDUMP) != 0) return Failure("madvise MADV_DONTDUMP");
  (void)::madvise(start, size, MADV_WIPEONFORK);  // ignoring: its children are programs soon
  is_locked = ::mlock2(start, size, MLOCK_ONFAULT) == 0;
  return memory;
}

void PopulateNextPages() {
  constexpr std::size_t kStackBytes = 6U << 12U;
  constexpr std::size_t kHeapBytes = 10U << 12U;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto populate = [page](uintptr_t first, std::size_t bytes) {
    first &= ~(page - 1);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): of a page
    (void)::madvise(reinterpret_cast<void*>(first), bytes, MADV_POPULATE_WRITE);  // ignoring: above
  };
  populate(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - kStackBytes, kStackBytes);
  const std::unique_ptr<char[]> heap(new char[kHeapBytes]);  // from the end of what was used
  populate(reinterpret_cast<uintptr_t>(heap.get()), kHeapBytes);
}

void ReleaseProgramCode() {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(__executable_start);  // of a page
  // One that also holds something else stays.
  const uintptr_t end = reinterpret_cast<uintptr_t>(etext) & ~(page - 1);
  (void)::madvise(__executable_start, end - start, MADV_DONTNEED);  // ignoring: then they stay
}

namespace {

// One mapping of /proc/PID/smaps (proc(5)).
struct Mapping {
  uintptr_t start = 0;
  uintptr_t end = 0;
  bool only_of_file = false;  // private, of a file, not to be written
};

// "start-end perms offset device inode path"; nothing where the line is another one.
std::optional<Mapping> ParseMapping(std::string_view line) {
  Mapping mapping;
  const char* last = line.data() + line.size();
  auto [dash, start_fault] = std::from_chars(line.data(), last, mapping.start, 16);
  if (start_fault != std::errc() || dash == last || *dash != '-') return std::nullopt;
  auto [rest, end_fault] = std::from_chars(dash + 1, last, mapping.end, 16);
  if (end_fault != std::errc()) return std::nullopt;
  const std::string_view perms(rest, static_cast<std::size_t>(last - rest));
  mapping.only_of_file = perms.starts_with(" r") && perms.substr(2, 1) == "-" &&
                         perms.substr(4, 1) == "p" && perms.find('/') != perms.npos;
  return mapping;
}

}  // namespace

void ReleaseFilePages() {
  constexpr std::size_t kMost = 4U << 20U;
  Result<std::string> maps = ReadFile(AT_FDCWD, "/proc/self/smaps", kMost);
  if (!maps.ok()) return;  // then they stay
  std::optional<Mapping> mapping;
  for (std::string_view rest = maps.value(); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (std::optional<Mapping> next = ParseMapping(line)) mapping = next;
    const bool unwritten = line.starts_with("Anonymous:") && line.ends_with(" 0 kB");
    if (!unwritten || !mapping || !mapping->only_of_file) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel names addresses by numbers
    void* start = reinterpret_cast<void*>(mapping->start);
    (void)::madvise(start, mapping->end - mapping->start, MADV_DONTNEED);  // ignoring: they stay
  }
}

Result<bool> HostHasSwap() {
  struct sysinfo host = {};
  if (::sysinfo(&host) < 0) return Failure("sysinfo");
  return host.totalswap != 0;
}

}  // namespace taskcell::sys

#include "launcher/sys/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

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

void ReleaseProgramCode() {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(__executable_start);  // of a page
  // One that also holds something else stays.
  const uintptr_t end = reinterpret_cast<uintptr_t>(etext) & ~(page - 1);
  (void)::madvise(__executable_start, end - start, MADV_DONTNEED);  // ignoring: then they stay
}

}  // namespace taskcell::sys

#include "launcher/sys/memory.h"

#include <sys/mman.h>

#include "launcher/base/text.h"
#include "launcher/sys/failure.h"

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

}  // namespace taskcell::sys

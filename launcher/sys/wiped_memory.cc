#include "launcher/sys/wiped_memory.h"

#include <malloc.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>

namespace taskcell::sys {

void FreeWiped(void* memory) {
  if (memory == nullptr) return;
  ::explicit_bzero(memory, ::malloc_usable_size(memory));
  std::free(memory);  // NOLINT(cppcoreguidelines-no-malloc): it is malloc's
}

// realloc itself would leave the old place as it was where it finds a new one.
void* ReallocateWiped(void* memory, std::size_t bytes) {
  if (memory != nullptr && bytes == 0) {
    FreeWiped(memory);
    return nullptr;
  }
  void* place = std::malloc(bytes);  // NOLINT(cppcoreguidelines-no-malloc): as above
  if (place == nullptr || memory == nullptr) return place;
  ::memcpy(place, memory, std::min(bytes, ::malloc_usable_size(memory)));
  FreeWiped(memory);
  return place;
}

}  // namespace taskcell::sys

#pragma once

#include <cstddef>

namespace taskcell::sys {

// free(3) and realloc(3) of memory of malloc(3) that leave nothing of what stood in it behind, in
// the form in which libraries take them. Both take nullptr.
void FreeWiped(void* memory);
void* ReallocateWiped(void* memory, std::size_t bytes);

}  // namespace taskcell::sys

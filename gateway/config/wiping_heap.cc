// A secret is read from a file, decrypted, put into a header and sent: what each step leaves in
// ordinary memory is gone when that is given back. (SecretText is where one stays meanwhile.)
#include "gateway/config/wiping_heap.h"

#include <openssl/crypto.h>

#include <cstdlib>
#include <new>

#include "launcher/sys/wiped_memory.h"

// Sanitizers have operators of their own, which go together.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TASKCELL_HEAP_IS_WATCHED
#endif

#if !defined(TASKCELL_HEAP_IS_WATCHED)
// libstdc++'s operators new take from malloc and aligned_alloc, and its other operators delete call
// these.
void operator delete(void* memory) noexcept { taskcell::sys::FreeWiped(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  taskcell::sys::FreeWiped(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  taskcell::sys::FreeWiped(memory);
}
#endif

namespace taskcell::gateway {

void WipeWhatOpensslFrees() {
  const auto allocate = [](std::size_t bytes, const char* /*file*/, int /*line*/) {
    return std::malloc(bytes);  // NOLINT(cppcoreguidelines-no-malloc): what OpenSSL uses itself
  };
  const auto reallocate = [](void* memory, std::size_t bytes, const char* /*file*/, int /*line*/) {
    return sys::ReallocateWiped(memory, bytes);
  };
  const auto free = [](void* memory, const char* /*file*/, int /*line*/) {
    sys::FreeWiped(memory);
  };
  // ignoring: where something has used it before, what it overwrites itself is gone all the same
  (void)::CRYPTO_set_mem_functions(allocate, reallocate, free);
}

}  // namespace taskcell::gateway

// In place of what libstdc++ and glibc have for failures that end the program anyway, and for other
// languages. Linked into the static programs only: without these, each would carry the exception
// machinery, locale and iostream (about 1.4 MiB).
#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

// NOLINTBEGIN(bugprone-reserved-identifier): the names are libstdc++'s and glibc's
namespace std {
[[noreturn]] void __throw_length_error(const char*) { abort(); }
[[noreturn]] void __throw_logic_error(const char*) { abort(); }
[[noreturn]] void __throw_out_of_range(const char*) { abort(); }
[[noreturn]] void __throw_out_of_range_fmt(const char*, ...) { abort(); }
[[noreturn]] void __throw_invalid_argument(const char*) { abort(); }
[[noreturn]] void __throw_bad_alloc() { abort(); }
[[noreturn]] void __throw_bad_array_new_length() { abort(); }
[[noreturn]] void __throw_bad_function_call() { abort(); }
[[noreturn]] void __throw_system_error(int) { abort(); }
}  // namespace std

// What glibc says is not translated: catalogues would bring files, dlopen and the unwinder along.
extern "C" char* __dcgettext(const char*, const char* message, int) {
  return const_cast<char*>(message);  // gettext's callers only read
}

// Around the first use of a variable that is static in a function (the C++ ABI for Itanium, 3.3.3):
// the first byte says that it is made, the second that somebody is about to. libstdc++'s would
// throw.
extern "C" {
int __cxa_guard_acquire(uint64_t* guard) {
  auto* bytes = reinterpret_cast<uint8_t*>(guard);
  while (__atomic_load_n(&bytes[0], __ATOMIC_ACQUIRE) == 0) {
    if (__atomic_exchange_n(&bytes[1], 1, __ATOMIC_ACQUIRE) == 0) {
      if (__atomic_load_n(&bytes[0], __ATOMIC_ACQUIRE) == 0) return 1;
      __atomic_store_n(&bytes[1], 0, __ATOMIC_RELEASE);
    }
    (void)::sched_yield();  // ignoring: it cannot fail
  }
  return 0;
}
void __cxa_guard_release(uint64_t* guard) {
  auto* bytes = reinterpret_cast<uint8_t*>(guard);
  __atomic_store_n(&bytes[0], 1, __ATOMIC_RELEASE);
  __atomic_store_n(&bytes[1], 0, __ATOMIC_RELEASE);
}
}
// NOLINTEND(bugprone-reserved-identifier)

void* operator new(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

// What glibc 2.36 does between a static program's first instruction and its main, but for asking
// the processor what it is. Its own start asks some sixty times (CPUID: every cache, by each of its
// parameters), to choose the fastest of its string functions. On a virtual machine each answer is
// an exit to the hypervisor, together 0.1 to 0.6 ms, which is more than anything else a cell's
// start does, twice over; and our programs move little memory. Without answers glibc takes the
// functions that every x86-64 has.
//
// And it has the pages that every start writes made ready by a few calls: each of them would else
// be a fault of its own, which on a virtual machine whose page tables the hypervisor keeps takes 12
// us where a page of such a call takes 0.7.
//
// Linked only with the very glibc it was written for (CMakeLists.txt); any other starts in its own
// way.
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): the names are glibc's
extern "C" {
#pragma GCC visibility push(hidden)
// glibc's own steps, in the order of its csu/libc-start.c.
void _dl_aux_init(ElfW(auxv_t) * auxiliary);
void __tunables_init(char** environment);
void _dl_relocate_static_pie();
void __libc_setup_tls();
void __libc_early_init(bool initial);
void __libc_init_first(int argc, char** argv, char** environment);
void __libc_check_standard_fds();
void _init();
void _fini();

extern void* __libc_stack_end;
extern void* _dl_random;  // 16 bytes of the kernel's
extern int __libc_enable_secure;
extern const ElfW(Ehdr) __ehdr_start;

using Hook = void (*)(int, char**, char**);
extern Hook __preinit_array_start[];
extern Hook __preinit_array_end[];
extern Hook __init_array_start[];
extern Hook __init_array_end[];
extern void (*__fini_array_start[])();
extern void (*__fini_array_end[])();

// glibc asks /proc where the program lies, for libraries that it might load. It loads none:
// unknown.
// NOLINTNEXTLINE(performance-no-int-to-ptr): this is how glibc spells it
const char* _dl_get_origin() { return reinterpret_cast<const char*>(-1); }

// What copying goes by, as it is before glibc knows better; the threshold it would compute from
// these.
extern long __x86_data_cache_size_half;
extern long __x86_data_cache_size;
extern long __x86_shared_cache_size_half;
extern long __x86_shared_cache_size;
extern long __x86_shared_non_temporal_threshold;
extern long __x86_rep_movsb_threshold;
extern long __x86_rep_stosb_threshold;
extern long __x86_rep_movsb_stop_threshold;
extern int __x86_string_control;
long __x86_data_cache_size_half = 32L * 1024 / 2;
long __x86_data_cache_size = 32L * 1024;
long __x86_shared_cache_size_half = 1024L * 1024 / 2;
long __x86_shared_cache_size = 1024L * 1024;
long __x86_shared_non_temporal_threshold = 1024L * 1024 * 3 / 4;
long __x86_rep_movsb_threshold = 2048;
long __x86_rep_stosb_threshold = 2048;
long __x86_rep_movsb_stop_threshold = 1024L * 1024 * 3 / 4;
int __x86_string_control = 0;
#pragma GCC visibility pop

int __cxa_atexit(void (*function)(void*), void* argument, void* dso);
[[noreturn]] int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, Hook,
                                   void (*)(), void (*)(), void* stack_end);
}

namespace {

constexpr uintptr_t kPage = 4096;

// Has the kernel make the pages from the one of `first` to the one before `last` ready, to be read
// or to be written as `advice` says. glibc's own madvise may not be called before relocation. What
// a kernel before Linux 5.14 or a filter refuses is a fault each, as ever.
[[gnu::always_inline]] inline void Populate(uintptr_t first, uintptr_t last, int advice) {
  first &= ~(kPage - 1);
  long result = SYS_madvise;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(first), "S"(last - first), "d"(advice)
               : "rcx", "r11", "memory");
}

// The program's code, and what its file has for its variables: a part of these is relocated, and
// the rest is glibc's state.
[[gnu::always_inline]] inline void PopulateProgram() {
  const auto start = reinterpret_cast<uintptr_t>(&__ehdr_start);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): where the file's head says that they are
  const auto* part = reinterpret_cast<const ElfW(Phdr)*>(start + __ehdr_start.e_phoff);
  for (int left = __ehdr_start.e_phnum; left > 0; --left, ++part) {
    if (part->p_type != PT_LOAD) continue;
    const uintptr_t first = start + part->p_vaddr;
    if ((part->p_flags & PF_X) != 0) Populate(first, first + part->p_memsz, MADV_POPULATE_READ);
    if ((part->p_flags & PF_W) != 0) Populate(first, first + part->p_filesz, MADV_POPULATE_WRITE);
  }
}

// Of 128 KiB that the kernel starts with, as deep as the launcher and init go before they clone.
[[gnu::always_inline]] inline void PopulateStack() {
  constexpr uintptr_t kStack = 6 * kPage;
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) & ~(kPage - 1);
  Populate(here - kStack, here, MADV_POPULATE_WRITE);
}

void EndProgram(void*) {
  for (auto hook = __fini_array_end; hook != __fini_array_start;) (*--hook)();
  _fini();
}

void BeginProgram(int argc, char** argv, char** environment) {
  for (Hook* hook = __preinit_array_start; hook != __preinit_array_end; ++hook)
    (*hook)(argc, argv, environment);
  _init();
  for (Hook* hook = __init_array_start; hook != __init_array_end; ++hook)
    (*hook)(argc, argv, environment);
}

// The canary of the stack protector, whose first byte is 0 so that no string contains it, and what
// saved code addresses are mixed with: at fixed places of the thread's block.
[[gnu::always_inline]] inline void SetGuards() {
  uint64_t random[2];  // a copy: the kernel's lie at any address
  __builtin_memcpy(random, _dl_random, sizeof random);
  constexpr uint64_t kFirstByte = 0xff;
  asm volatile("movq %0, %%fs:0x28" : : "r"(random[0] & ~kFirstByte));
  asm volatile("movq %0, %%fs:0x30" : : "r"(random[1]));
}

}  // namespace

// Not protected itself: its canary comes to be in here. Until it is relocated the program may use
// hidden names only.
__attribute__((no_stack_protector)) int __libc_start_main(int (*main)(int, char**, char**),
                                                          int argc, char** argv, Hook, void (*)(),
                                                          void (*)(), void* stack_end) {
  PopulateProgram();
  PopulateStack();
  char** environment = argv + argc + 1;
  __libc_stack_end = stack_end;
  char** after_environment = environment;
  while (*after_environment++ != nullptr) {
  }
  _dl_aux_init(reinterpret_cast<ElfW(auxv_t)*>(after_environment));
  __tunables_init(environment);
  _dl_relocate_static_pie();
  __libc_setup_tls();
  SetGuards();
  __libc_early_init(true);
  __libc_init_first(argc, argv, environment);
  __cxa_atexit(EndProgram, nullptr, nullptr);
  if (__libc_enable_secure != 0) __libc_check_standard_fds();
  BeginProgram(argc, argv, environment);
  ::exit(main(argc, argv, environment));  // NOLINT(concurrency-mt-unsafe): one thread
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "launcher/base/result.h"

namespace taskcell::sys {

// Owns one anonymous mapping.
class Memory {
 public:
  explicit Memory(std::span<char> bytes) : bytes_(bytes) {}
  Memory(Memory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory();

  // Zeroed. The kernel gives each page when it is first written.
  std::span<char> bytes() const { return bytes_; }

 private:
  std::span<char> bytes_;
};

// mmap(2) of `size` bytes of anonymous memory without reserving swap for it. `shared`: children
// made later share it with this process.
Result<Memory> MapMemory(std::size_t size, bool shared);

// The same, private, for secrets: in no core dump (MADV_DONTDUMP), zero in a forked child
// (MADV_WIPEONFORK; a kernel before 4.14 has none), and each page locked once it is written
// (MLOCK_ONFAULT). `is_locked` is false where RLIMIT_MEMLOCK allows no more.
Result<Memory> MapSecretMemory(std::size_t size, bool& is_locked);

// Has the kernel make at once what this process will soon write of its stack and its heap, for one
// that was just cloned or has just cloned: else each page is a fault. Where the kernel does not
// (before Linux 5.14), they are.
void PopulateNextPages();

// Lets go of the pages of this program's own code that it has touched, for a process that is about
// to sleep for long: what it needs again the kernel maps again from the page cache.
void ReleaseProgramCode();

// The same for what this process has touched of all the files it was linked with, their code and
// their constants, for one that is about to do something long with little of it. Nothing is lost: a
// page that was written is none of the file's any more, and stays.
void ReleaseFilePages();

// Whether any swap is in use (sysinfo(2)): of the whole host, whatever /proc/swaps shows here.
Result<bool> HostHasSwap();

}  // namespace taskcell::sys

// The programs that make a cell and run in it, as files: what they need of the host.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>

#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::test {
namespace {

[[maybe_unused]] constexpr std::size_t kMaxProgramBytes = 64U << 20U;

template <typename Header>
Header At(const std::string& bytes, std::size_t offset) {
  Header header = {};
  EXPECT_LE(offset + sizeof header, bytes.size());
  if (offset + sizeof header <= bytes.size())
    std::memcpy(&header, bytes.data() + offset, sizeof header);
  return header;
}

// "" for a program that needs neither an interpreter nor a library, or what it needs.
[[maybe_unused]] std::string Needs(const std::string& path) {
  const std::string bytes = sys::ReadFile(AT_FDCWD, path, kMaxProgramBytes).value();
  const auto elf = At<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return "it is no program";
  for (unsigned i = 0; i < elf.e_phnum; ++i) {
    const auto part = At<Elf64_Phdr>(bytes, elf.e_phoff + std::size_t{i} * elf.e_phentsize);
    if (part.p_type == PT_INTERP) return "an interpreter";
    if (part.p_type != PT_DYNAMIC) continue;
    for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= part.p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = At<Elf64_Dyn>(bytes, part.p_offset + at);
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_NEEDED) return "a library";
    }
  }
  return {};
}

#if defined(AS_DELIVERED)  // sanitizers cannot be linked so
TEST(DeliveredTest, WhatMakesACellAndWhatRunsInItIsLinkedStatically) {
  for (const char* name : {"taskcell-launch", "taskcell-init", "taskcell-attacker",
                           "taskcell-breaker", "taskcell-loop"})
    EXPECT_EQ(Needs(Program(name)), "") << name;
  EXPECT_EQ(Needs("/bin/sh"), "an interpreter") << "control";
}
#endif

}  // namespace
}  // namespace taskcell::test

#include "launcher/sys/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include "launcher/sys/file.h"
#include "tests/support/fixture.h"

namespace taskcell::sys {
namespace {

// A figure of /proc/self/status, in KiB.
int Figure(const std::string& name) {
  const std::string status = ReadFile(AT_FDCWD, "/proc/self/status", 65536).value();
  return std::atoi(status.c_str() + status.find(name) + name.size());
}

int written_before = 1;
constexpr std::size_t kMappedKiB = 1024;  // of this program

// As much of a file as a program that is linked with many libraries touches when it starts.
TEST(MemoryTest, PagesOfFilesAreLetGoAndNothingIsLost) {
  int status = test::InChild([] {
    written_before = 4711;
    UniqueFd file = Open("/proc/self/exe", O_RDONLY).value();
    void* mapped = ::mmap(nullptr, kMappedKiB << 10U, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapped == MAP_FAILED) return 1;
    const std::string_view bytes(static_cast<const char*>(mapped), kMappedKiB << 10U);
    const std::size_t sum = std::hash<std::string_view>()(bytes);
    const int before = Figure("RssFile:");
    const int own = Figure("RssAnon:");
    ReleaseFilePages();
    if (Figure("RssFile:") > before - static_cast<int>(kMappedKiB) * 3 / 4) return 3;
    if (Figure("RssAnon:") < own) return 4;
    if (written_before != 4711 || std::hash<std::string_view>()(bytes) != sum) return 5;
    return test::Run({"/bin/sh", "-c", "exit 7"}).status == 7 ? 0 : 6;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace taskcell::sys

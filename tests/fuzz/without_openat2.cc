// Linked into a fuzz target that runs again without openat2: see AGAIN_WITHOUT_OPENAT2 of
// taskcell_fuzz.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/fuzz.h"
#include "tests/support/syscall_faults.h"

namespace taskcell::fuzz {
namespace {

// Before main, and so before any thread: what is installed later holds for one thread alone.
bool Install() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
  const char* answer = std::getenv("TASKCELL_TEST_OPENAT2");
  if (answer == nullptr) return false;
  const bool is_absent = std::string_view(answer) == "ENOSYS";
  Require(is_absent || std::string_view(answer) == "EPERM");
  const int err = is_absent ? ENOSYS : EPERM;
  Require(test::InstallFaults({{SYS_openat2, err}}));
  errno = 0;
  Require(::syscall(SYS_openat2, -1, "", nullptr, 0) < 0 && errno == err);
  return true;
}

[[maybe_unused]] const bool kInstalled = Install();

}  // namespace
}  // namespace taskcell::fuzz

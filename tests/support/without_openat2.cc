#include "tests/support/without_openat2.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <string_view>

#include "tests/support/syscall_faults.h"

namespace taskcell::test {
namespace {

// Before any test, and so before any thread: what is installed later holds for one thread alone.
class Openat2Fault : public testing::Environment {
 public:
  void SetUp() override {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
    const char* answer = std::getenv("TASKCELL_TEST_OPENAT2");
    if (answer == nullptr) return;
    const bool is_absent = std::string_view(answer) == "ENOSYS";
    ASSERT_TRUE(is_absent || std::string_view(answer) == "EPERM") << answer;
    ASSERT_TRUE(InstallFaults({{SYS_openat2, is_absent ? ENOSYS : EPERM}}));
  }
};

[[maybe_unused]] const testing::Environment* const kInstalled =
    testing::AddGlobalTestEnvironment(new Openat2Fault);

}  // namespace
}  // namespace taskcell::test

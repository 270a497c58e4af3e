#include "launcher/cell/capability_names.h"

#include <gtest/gtest.h>
#include <sys/capability.h>

#include <string>

namespace taskcell::cell {
namespace {

// libcap's names as the second opinion.
TEST(CapabilityNamesTest, EachBitHasTheNameThatLibcapHasForIt) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    char* name = ::cap_to_name(static_cast<cap_value_t>(bit));
    ASSERT_NE(name, nullptr);
    EXPECT_EQ(CapabilityNames(uint64_t{1} << bit), name) << "bit " << bit;
    ::cap_free(name);
  }
}

TEST(CapabilityNamesTest, ASetIsNamedFromItsLowestBitUp) {
  EXPECT_EQ(CapabilityNames(0), "");
  EXPECT_EQ(CapabilityNames(1U << CAP_SYS_ADMIN | 1U << CAP_CHOWN), "cap_chown cap_sys_admin");
}

}  // namespace
}  // namespace taskcell::cell
